"""What the sections of a report say of its answer: every number of the charts and tables, and what is marked how."""

from collections.abc import Sequence
from typing import Any

import pytest
from test_report import answer, seen

from glm_kvplan.engines.sglang.answers.report_answer import ReportAnswer
from glm_kvplan.engines.sglang.answers.report_charts import (
    frontier_section,
    host_pools_section,
    map_section,
    prices_section,
    split_section,
)
from glm_kvplan.engines.sglang.answers.report_page import report_page
from glm_kvplan.engines.sglang.answers.report_tables import formulas_section, paste_section, sizes_section
from glm_kvplan.engines.sglang.answers.report_verdict import verdict, wanted
from glm_kvplan.engines.sglang.answers.solve_page import price_move
from glm_kvplan.engines.sglang.sizing.memory_map import FREE
from glm_kvplan.show.chart import CurveChart, FrontierChart, PanelChart, Point, Stack
from glm_kvplan.show.format import three_digits
from glm_kvplan.show.page import Cell, Code, Figure, Line, Section, Table
from glm_kvplan.units import GB


def figure(section: Section) -> Figure:
    (found,) = (block for block in section.blocks if isinstance(block, Figure))
    return found


def numbers(section: Section) -> Table:
    found = figure(section).numbers
    assert found is not None and str(found.folded) == "The numbers"
    return found


def lines(section: Section) -> list[str]:
    return [str(block.text) for block in section.blocks if isinstance(block, Line)]


def remarks(found: ReportAnswer) -> list[str]:
    return [*map(str, verdict(found).remarks)]


def value(cell: Any) -> Any:
    return cell.value if isinstance(cell, Cell) else cell


# --- the map ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["fits", "dies", "host"])
def test_a_row_a_part_of_the_map(kind: str) -> None:
    found = answer(kind)
    memory, stack = found.start.memory_map, figure(map_section(found)).chart
    assert memory is not None and isinstance(stack, Stack)
    shown = numbers(map_section(found))
    assert [column.kind for column in shown.columns] == ["text", "bytes", "binary", "text", "text", "text"]
    assert any("small pools" in str(bar.name) for bar in stack.bars)
    moved = {str(bar.name) for bar in stack.bars if bar.estimated}
    *rows, total = shown.rows
    assert total.cells[1:3] == (memory.total_bytes,) * 2 and total.tone == "strong"
    for row, segment in zip(rows, memory.segments, strict=True):
        name, nbytes, size, charged, certainty, note = row.cells
        assert isinstance(nbytes, Cell) and nbytes == size and nbytes.value == segment.nbytes
        named = {str(bar.name) for bar in stack.bars}
        assert str(name) not in named or nbytes.estimated == (str(name) in moved)
        outside = "" if segment.name == FREE else "charged" if segment.charged else "not charged"
        assert [str(each) for each in (name, charged, certainty, note)] == [
            segment.name, outside, segment.certainty, segment.note,
        ]  # fmt: skip


# --- prices ----------------------------------------------------------------------------------------------------------


def test_bars_of_the_prices() -> None:
    found = answer("fits")
    prices, section = found.start.prices, prices_section(found)
    assert prices and found.start.memory.estimated
    chart = figure(section).chart
    assert isinstance(chart, PanelChart) and chart.aligned
    values = {
        "tokens": ("latent", {price.knob: price.total_tokens for price in prices}),
        "state slots": ("states", {price.knob: price.total_slots for price in prices}),
        "requests": ("loaded", {price.knob: price.total_requests for price in prices}),
        "free GiB": ("free", {price.knob: price.free_bytes for price in prices}),
    }
    moves = {price.knob: str(price_move(price)) for price in prices}
    assert [str(panel.title) for panel in chart.panels] == [*values]
    for panel in chart.panels:
        look, expected = values[str(panel.title)]
        assert len(panel.bars) >= 5
        for bar in panel.bars:  # of what is too little to draw there is none
            counted = str(panel.title) != "free GiB"
            assert (bar.value, bar.look, str(bar.note)) == (expected[str(bar.name)], look, moves[str(bar.name)])
            assert bar.estimated == counted
            assert not counted or str(bar.text).lstrip("+-") == three_digits(abs(int(bar.value)))
    for price in prices:
        assert f"{price.knob} {price_move(price)}: tokens " in str(chart.alt)
    assert numbers(section).rows and len(numbers(section).rows) == len(prices)
    plain = found._replace(start=found.start._replace(memory=found.start.memory._replace(how="measured")))
    shown = figure(prices_section(plain)).chart
    assert isinstance(shown, PanelChart)
    assert {bar.name for bar in shown.panels[0].bars if bar.estimated} == {
        price.knob for price in prices if price.estimated
    }


def test_a_knob_that_is_refused_says_so_once() -> None:
    found = answer("fits")
    prices = found.start.prices
    assert prices
    refused = prices[1]._replace(failure="out_of_memory")
    shown = found._replace(start=found.start._replace(prices=(prices[0], refused, *prices[2:])))
    chart = figure(prices_section(shown)).chart
    assert isinstance(chart, PanelChart)
    bars = [bar for panel in chart.panels for bar in panel.bars if bar.name == refused.knob]
    assert len(bars) == len(chart.panels) == 4
    assert [str(bar.text) for bar in bars] == ["refused: out of memory"] + ["–"] * (len(bars) - 1)
    assert {bar.value for bar in bars} == {0} and "–" not in str(chart.alt)


def test_without_prices_there_is_no_chart() -> None:
    found = answer("fits")
    section = prices_section(found._replace(start=found.start._replace(prices=())))
    assert lines(section) == ["No knob of this deployment can be moved by one unit."] and len(section.blocks) == 1


# --- the ratio -------------------------------------------------------------------------------------------------------


def test_the_curve_of_the_ratio() -> None:
    found = answer("fits")
    curve, section = found.ratio, split_section(found)
    assert curve is not None and curve.moves and curve.default is not None and curve.advised is not None
    chart = figure(section).chart
    assert isinstance(chart, CurveChart)
    assert [(point.x, point.y) for point in chart.points] == [(each.slots, each.tokens) for each in curve.points]
    named = {point.text for point in chart.points} - {""}
    assert named <= {"0.1", "0.3", "0.5", "0.9", "2", "6"} and len(named) >= 3
    assert chart.corner == Point(curve.need_slots, curve.need_tokens)
    marks = {mark.name: (mark.x, mark.y, mark.shape) for mark in chart.marks}
    expected = {"default": (curve.default, "circle"), "present": (curve.present, "diamond"),
                "advised": (curve.advised, "star")}  # fmt: skip
    assert marks == {name: (point.slots, point.tokens, shape) for name, (point, shape) in expected.items()}
    titles = [str(mark.title) for mark in chart.marks]
    assert titles == [f"engine's default, {curve.default.ratio:g}", f"this plan, {curve.present.ratio:g}", "advised"]
    assert [column.kind for column in numbers(section).columns] == ["text", "count", "count", "count"]
    assert [str(numbers(section).columns[place].title) for place in (0, 3)] == [
        "mamba_full_memory_ratio", "max_running_requests",
    ]  # fmt: skip
    *rows, needed = numbers(section).rows
    ends = [("", each) for each in curve.points] + [(mark, expected[mark][0]) for mark in marks]
    assert [row.cells[1:] for row in rows] == [(each.slots, each.tokens, each.requests) for _, each in ends]
    assert needed.cells[1:] == (curve.need_slots, curve.need_tokens, "")
    first, last, alt = curve.points[0], curve.points[-1], str(chart.alt)
    assert f"from {first.ratio:g} to {last.ratio:g} the tokens go from {first.tokens:,} to {last.tokens:,}" in alt
    assert f"from {first.slots:,} to {last.slots:,}" in alt and f"advised: {curve.advised.tokens:,} tokens" in alt
    assert f"needs {curve.need_slots:,} slots and {curve.need_tokens:,} tokens" in lines(section)[0]


def test_a_mix_is_marked_at_its_mean() -> None:
    for kind, said in (("one", 1), ("fits", 0)):
        section = frontier_section(answer(kind))
        chart = figure(section).chart
        assert isinstance(chart, FrontierChart)
        assert sum(line == "A mix of lengths is marked at its mean." for line in lines(section)) == said
        demand = answer(kind).demand
        assert chart.planned == (demand.mean_context, demand.concurrency)


def test_slots_by_flag_and_a_ratio_that_does_nothing() -> None:
    section = split_section(answer("fixed"))
    chart = figure(section).chart
    assert isinstance(chart, CurveChart)
    assert "this plan, slots by flag" in [str(mark.title) for mark in chart.marks]
    still = split_section(answer("still"))
    assert len(still.blocks) == 1 and lines(still)[0].startswith("The ratio does nothing here")


# --- host pools ------------------------------------------------------------------------------------------------------


def test_bars_of_the_host() -> None:
    found = answer("host")
    host, section = found.start.host, host_pools_section(found)
    assert host is not None and host.fit is not None and section is not None
    assert host_pools_section(answer("fits")) is None
    chart = figure(section).chart
    assert isinstance(chart, PanelChart) and not chart.aligned
    rank, everywhere, prefixes = chart.panels
    looks = {"KV": "latent", "MAMBA": "states", "INDEXER": "index", "DRAFT": "latent"}
    assert [(bar.name, bar.value, bar.look) for bar in rank.bars] == [
        (pool.name.upper(), pool.nbytes, looks[pool.name.upper()]) for pool in host.fullest.pools
    ]
    total = max(host.bytes_by_host)
    assert [(str(bar.name), bar.value, bar.look) for bar in everywhere.bars] == [
        (f"pools of {host.ranks_on_a_host} ranks", total, "loaded"), ("available", host.fit.available_bytes, "free"),
    ]  # fmt: skip
    assert str(everywhere.bars[0].text) == f"{total / GB:,.2f} GB"
    covered = host.coverage
    counted = [covered.kv_prefixes, covered.state_prefixes, covered.usable_prefixes]
    assert [(bar.value, str(bar.text)) for bar in prefixes.bars] == [(each, f"{each:,}") for each in counted]
    assert [bar.look for bar in prefixes.bars] == ["latent", "states", "free"]
    assert f"so {covered.usable_prefixes:,} are usable" in str(chart.alt)
    unknown = answer("host by size")
    known = host_pools_section(unknown)
    assert known is not None
    shown = figure(known).chart
    assert isinstance(shown, PanelChart) and len(shown.panels[1].bars) == 1
    assert len(lines(section)) > 3 and len(numbers(section).rows) == len(host.fullest.pools) + 1


# --- tables ----------------------------------------------------------------------------------------------------------


def cells(section: Section, place: int = 0) -> Sequence[tuple[Any, ...]]:
    tables = [block for block in section.blocks if isinstance(block, Table)]
    return [row.cells for row in tables[place].rows]


@pytest.mark.parametrize("kind", ["fits", "dies", "draft"])
def test_sizes_with_their_bounds(kind: str) -> None:
    found = answer(kind)
    start, limits = found.start, found.start.limits
    assert limits is not None
    before, after, *sizes = cells(sizes_section(found))
    shown = sizes_section(found).blocks[-1]
    assert isinstance(shown, Table) and [column.kind for column in shown.columns] == ["text", "count", "text", "text"]
    tilde = "~" if start.memory.estimated else ""
    assert str(before[1]).startswith(tilde) and str(before[1]).endswith(" GiB") and before[2:] == ("", "")
    assert str(after[1]).startswith(tilde)
    bounds = (limits.tokens, (limits.state_slots,), limits.requests)
    for place, (row, bound) in enumerate(zip(sizes, bounds, strict=True)):
        _, size, span, told = row
        low, high = start.within(place)
        assert (size.value, size.estimated, size.at_most) == (start.sizes[place], low != high, kind == "draft")
        assert (str(span) == "") == (low == high)
        text = bound[0].name
        if len(bound) > 1:
            number = f"~{three_digits(bound[1].value)}" if start.memory.estimated else f"{bound[1].value:,}"
            text += f", then {bound[1].name} at {number}"
        assert str(told) == text
    assert len(cells(sizes_section(answer("refused")))) == 2


def test_workers_are_named_where_there_are_several() -> None:
    assert lines(sizes_section(answer("host"))) == ["Sizes are those of one DP worker; there are 8."]
    assert lines(sizes_section(answer("fits"))) == []


def test_every_formula_of_the_answer_is_there() -> None:
    found = answer("fits")
    section = formulas_section(found)
    tables = [block for block in section.blocks if isinstance(block, Table)]
    assert [len(table.rows) for table in tables] == [
        len(found.start.memory.parts), len(found.steps), len(found.ledgers), len(found.start.needs.items),
    ]  # fmt: skip
    assert all(table.folded for table in tables)
    kinds = [[column.kind for column in table.columns] for table in tables]
    assert kinds == [
        ["text", "count", "text", "text"], ["text", "text", "text", "count", "text"],
        ["text", "text", "text", "count", "text"], ["text", "binary", "text", "text", "text"],
    ]  # fmt: skip
    for row, part in zip(cells(section, 0), found.start.memory.parts, strict=True):
        assert (row[0], row[1], str(row[2]), row[3]) == (part.name, f"{part.gib:+.2f} GiB", part.how, part.source)
    for row, step in zip(cells(section, 1), found.steps, strict=True):
        number = f"{step.value:,}" if isinstance(step.value, int) else repr(step.value)
        assert row == (step.name, step.formula, step.formula_in_numbers, f"{number} {step.unit}", step.source)
    assert {type(step.value) for step in found.steps} == {int, float}
    for row, ledger in zip(cells(section, 2), found.ledgers, strict=True):
        account = ledger.account
        price = f"{ledger.bytes_per_unit:,} B a {account.unit} × {ledger.units:,} = {ledger.total:,} B"
        assert (*row[:3], str(row[3]), row[4]) == (
            account.title, account.formula, ledger.formula_in_numbers, price, account.source,
        )  # fmt: skip
    needs = found.start.needs
    assert needs is not None
    for row, item in zip(cells(section, 3), needs.items, strict=True):
        assert (row[1].value, row[1].estimated) == (item.nbytes, item.certainty != "exact")
        assert (str(row[0]), str(row[2]), row[3], row[4]) == (item.name, item.certainty, item.bound, item.source)
    refused = formulas_section(answer("refused"))
    assert [len(block.rows) > 0 for block in refused.blocks if isinstance(block, Table)] == [True, True, False, False]


def test_flags_to_paste() -> None:
    """The plan, then the nearest layout where this one does not serve all, then the split that is advised."""
    found = answer("layout")
    plan, nearest, *advised = [block for block in paste_section(found).blocks if isinstance(block, Code)]
    layout = found.advised.layouts[0]
    assert str(plan.introduction) == "The plan as it is:" and "--tp-size 4" in plan.text
    assert str(nearest.introduction).endswith(f"64 requests, on {layout.gpus} × H200:")
    sizes = found.advised.sizes
    assert (sizes is not None) == bool(advised)
    if sizes is not None:
        text = str(advised[0].introduction)
        assert f"sizes {sizes.tokens:,} tokens, {sizes.state_slots:,} state slots" in text
        assert f"serves {found.advised.served.requests:,} of the 64 requests" in text
        for name in found.advised.flags:
            assert "--" + name.replace("_", "-") in advised[0].text
    bare = paste_section(found._replace(flags={}))
    assert lines(bare)[0] == "No flag is given: every value is the engine's own."
    fits = [str(block.introduction) for block in paste_section(answer("fits")).blocks if isinstance(block, Code)]
    assert fits[0] == "The plan as it is:" and len(fits) == 2 and not lines(paste_section(answer("fits")))


# --- the verdict -----------------------------------------------------------------------------------------------------


def test_what_was_wanted() -> None:
    assert str(wanted(answer("fits"))) == "Wanted: 8 requests at once, contexts of 8,192 tokens."
    assert str(wanted(answer("one"))).startswith("Wanted: one request at a time, contexts of ")
    states = answer("fits").demand._replace(prefix_states=2)
    assert str(wanted(answer("fits")._replace(demand=states))).endswith("8,192 tokens, 2 prefix states each.")


def test_remarks_of_the_memory() -> None:
    """An estimate says what it moves, and nothing of memory that was measured or of an upper bound."""
    found = answer("fits")
    low, high = found.span
    said = [text for text in remarks(found) if "The memory is estimated" in text]
    assert len(said) == 1 and ((f"{low:,} to {high:,} requests fit" in said[0]) == (low != high))
    assert f"±{found.start.memory.error_gib:.1f} GiB" in said[0]
    same = [text for text in remarks(found._replace(span=(8, 8))) if "The memory is estimated" in text]
    assert same[0].endswith("and 8 requests fit all the same.")
    for kind in ("dies", "draft", "refused"):
        assert not [text for text in remarks(answer(kind)) if "The memory is estimated" in text]
    assert "is not counted" in remarks(answer("draft"))[0]
    assert not any("is not counted" in text for text in remarks(found))


def test_remarks_of_what_helps() -> None:
    refused = answer("refused")
    told = remarks(refused)
    assert told[0] == f"Each of these alone lets it start: {', '.join(each.text for each in refused.start.remedies)}."
    layout = answer("layout")
    nearest = layout.advised.layouts[0]
    assert f"all: {nearest.gpus} GPUs, --" in remarks(layout)[-1]
    advised = layout.advised
    assert advised.sizes is not None
    assert f"With the flags at the end {advised.served.requests:,} of 64 fit." in remarks(layout)
    fits = answer("fits")
    blocked = fits.advised._replace(now=fits.advised.now._replace(failure="x"), holds=False)
    assert fits.served.requests == 8 == fits.demand.concurrency
    for advised_now, said in ((blocked, False), (blocked._replace(holds=True), True)):
        told = remarks(fits._replace(advised=advised_now))
        assert any(text.startswith("With the flags at the end") for text in told) == said
    none = layout._replace(advised=advised._replace(sizes=None))
    assert "No flags on this layout serve one such request." in remarks(none)
    assert not [text for text in remarks(answer("fits")) if "flags" in text]


def test_remarks_of_what_stays_free() -> None:
    found = answer("fits")
    headroom = found.start.headroom
    assert headroom is not None and headroom.verdict == "fits"
    assert f"{headroom.message}." in remarks(found)
    for verdict_, begins in (("tight", f"Tight: {headroom.message}."), ("short", "")):
        start = found.start._replace(headroom=headroom._replace(verdict=verdict_))
        told = remarks(found._replace(start=start))
        assert (begins in told) == bool(begins) and f"{headroom.message}." not in told
    mixed = seen("mtp")
    assert f"{mixed.served.requests:,} fit 99% of the time" in " ".join(remarks(mixed))
    assert not any("of the time" in text for text in remarks(found))


def test_the_sections_of_a_report() -> None:
    found = answer("host")
    titles = [str(section.title) for section in report_page(found).sections]
    assert titles[0] == "What the engine sizes" and len(titles) == len(set(titles)) == 10
    bare = report_page(found._replace(made=found.made._replace(command="")))
    assert [str(section.title) for section in bare.sections] == titles[:-1]
    refused = report_page(answer("refused"))
    assert not refused.charts and len(refused.sections) == 5
