"""What a report of a vLLM launch draws: bars that are the card, what is one bar, what legends name, a star."""

from functools import cache

import pytest
from vllm_pages import rows, tables, titles

import glm_kvplan as kv
from glm_kvplan.contexts import parse_contexts
from glm_kvplan.engines.vllm.answers.report_answer import ReportAnswer, answer_report
from glm_kvplan.engines.vllm.answers.report_charts import frontier_section, map_section, prices_section
from glm_kvplan.engines.vllm.card_map import CardMap, Segment, card_map
from glm_kvplan.engines.vllm.starting import begin
from glm_kvplan.engines.vllm.workload_cost import workload_cost
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.show.chart import Bar, FrontierChart, Look, PanelChart, Stack
from glm_kvplan.show.format import binary, three_digits, whole
from glm_kvplan.show.page import Figure, Line, Section
from glm_kvplan.show.text_bars import bar_size
from glm_kvplan.units import GIB
from glm_kvplan.workload import Demand, Workload

TP4: dict[str, object] = {"tensor_parallel_size": 4}
MTP3 = {"method": "mtp", "num_speculative_tokens": 3}
GIVEN: dict[str, tuple[dict[str, object], float | None]] = {
    "estimated": ({}, None),
    "measured": ({}, 45.07),
    "shared": ({"decode_context_parallel_size": 2}, None),  # one knob is refused
    "offloaded": ({"cpu_offload_gb": 20, "speculative_config": MTP3}, None),
    "engines": ({"data_parallel_size": 2}, None),
    "narrow": ({"gpu_memory_utilization": 0.7}, None),
    "without caching": ({"enable_prefix_caching": False}, None),
}


@cache
def answer(name: str = "estimated", lengths: str = "128k", requests: int = 20) -> ReportAnswer:
    flags, memory = GIVEN[name]
    plan = kv.plan({**TP4, **flags}, engine="vllm-0.33.0", gpu="h200")
    return answer_report(plan, Demand(parse_contexts(lengths), requests), MemoryGiven(available_gib=memory))


def figure(section: Section) -> Figure:
    (found,) = (block for block in section.blocks if isinstance(block, Figure))
    return found


def stack(found: ReportAnswer) -> Stack:
    chart = figure(map_section(found)).chart
    assert isinstance(chart, Stack)
    return chart


def drawn(*segments: tuple[str, int, Look], total: int = 4000, outside: bool = False) -> Stack:
    """The bars of a card of `total` bytes."""
    made = tuple(Segment(name, nbytes, look, False, outside and name == "a") for name, nbytes, look in segments)
    return stack(answer()._replace(card=CardMap(made, total, 1)))


def bars(chart: Stack) -> list[tuple[str, int | float]]:
    return [(str(bar.name), bar.value) for bar in chart.bars]


@pytest.mark.parametrize("name", ["estimated", "measured", "offloaded"])
def test_the_bars_are_the_card(name: str) -> None:
    found, chart = answer(name), stack(answer(name))
    assert found.card is not None
    total = 143771 << 20
    assert chart.total == found.card.total_bytes == total == sum(bar.value for bar in chart.bars)
    assert [look for look, _ in chart.looks] == [
        look for look in ("loaded", "latent", "index", "states", "other", "free", "alarm")
        if any(bar.look == look for bar in chart.bars)
    ]  # fmt: skip
    assert {bar.look for bar in chart.bars} == {look for look, _ in chart.looks}
    listed = ", ".join(f"{bar.name} {bar_size(bar)}" for bar in chart.bars)
    assert str(chart.alt) == f"Bars to scale: {listed}."
    text = map_section(found).blocks[0]
    assert isinstance(text, Line)
    assert str(text.text).startswith(f"{binary(total)} of one GPU: ")
    assert f"with {found.card.requests} of the wanted requests in them" in str(text.text)


def test_its_numbers_are_every_segment_and_their_sum() -> None:
    found = answer()
    numbers = figure(map_section(found)).numbers
    assert numbers is not None and found.card is not None and str(numbers.folded) == "The numbers"
    assert titles(numbers) == ["part", "bytes", "size", "note"]
    told = rows(numbers)
    assert told[-1] == ["total", whole(found.card.total_bytes), binary(found.card.total_bytes), ""]
    assert numbers.rows[-1].tone == "strong" and {row.tone for row in numbers.rows[:-1]} == {""}
    assert len(told) == 1 + len(found.card.segments)
    for row, segment in zip(told, found.card.segments, strict=False):
        assert (row[0], row[3]) == (segment.name, str(segment.note))
        assert (row[1].startswith("~"), row[2].startswith("~")) == (segment.estimated,) * 2
        if not segment.estimated:
            assert row[1:3] == [whole(segment.nbytes), binary(segment.nbytes)]


def test_a_bar_outside_the_share_is_marked_and_the_mark_explained() -> None:
    chart = drawn(("a", 1000, "loaded"), ("b", 3000, "free"), outside=True)
    assert [bar.mark for bar in chart.bars] == ["*", ""]
    assert [(mark, str(text)) for mark, text in chart.marks] == [("*", "outside vLLM's share")]
    assert drawn(("a", 1000, "loaded"), ("b", 3000, "free")).marks == ()
    assert {str(bar.name) for bar in stack(answer()).bars if bar.mark} == {"kept by the driver", "left to others"}


def test_small_paddings_are_one_bar_before_what_is_free() -> None:
    """Less than a fortieth of the whole; one alone stays itself, and so does what is no padding."""
    two = drawn(("rows", 10, "latent"), ("a", 99, "other"), ("b", 99, "other"), ("rest", 3792, "free"))
    assert bars(two) == [("rows", 10), ("2 small parts", 198), ("rest", 3792)]
    assert two.bars[1].look == "other"
    one = drawn(("rows", 10, "latent"), ("a", 99, "other"), ("b", 100, "other"), ("rest", 3791, "free"))
    assert bars(one) == [("rows", 10), ("a", 99), ("b", 100), ("rest", 3791)]
    over = drawn(("a", 99, "other"), ("b", 99, "other"), ("taken", 4000, "loaded"), ("rest", -198, "alarm"))
    assert bars(over) == [("taken", 4000), ("2 small parts", 198), ("rest", -198)]
    last = drawn(("a", 99, "other"), ("b", 99, "other"), ("taken", 3802, "loaded"))
    assert bars(last) == [("taken", 3802), ("2 small parts", 198)]


def test_less_than_a_block_is_no_bar() -> None:
    """Under a thousandth of the card it lies with the blocks for more requests; what is over is always shown."""
    assert bars(drawn(("a", 3997, "free"), ("b", 3, "free"))) == [("a", 4000)]
    assert bars(drawn(("a", 3996, "free"), ("b", 4, "free"))) == [("a", 3996), ("b", 4)]
    assert bars(drawn(("a", 4003, "free"), ("b", -3, "alarm"))) == [("a", 4003), ("b", -3)]


@pytest.mark.parametrize(
    ("name", "lengths"), [("estimated", "128k"), ("engines", "128k"), ("estimated", "0.8:8k,0.2:128k")]
)
def test_the_blocks_of_the_map_hold_the_load(name: str, lengths: str) -> None:
    """What of the blocks is filled is what `estimate` says that as many requests of each length take."""
    found = answer(name, lengths, 40)
    begun = begin(kv.plan({**TP4, **GIVEN[name][0]}, engine="vllm-0.33.0", gpu="h200"), MemoryGiven())
    card, mix = found.card, parse_contexts(lengths)
    assert card is not None
    engines = begun.plan.deployment.data_parallel_size
    most = min(found.served.requests, 40) // engines
    assert card.requests == most if len(mix.lengths) == 1 else card.requests <= most
    if card.requests < most:  # shares round up
        more = zip(mix.lengths, mix.shared(card.requests + 1), strict=True)
        needed = sum(number * begun.plan.blocks.needed(length) for length, number in more)
        assert needed + 1 > begun.start.count
    costs = [
        workload_cost(begun.plan.blocks, Workload(length, number * engines))
        for length, number in zip(mix.lengths, mix.shared(card.requests), strict=True)
    ]
    blocks = 1 + sum(cost.blocks - 1 for cost in costs)
    held = {segment.name: segment for segment in card.segments}
    spare = (begun.start.count - blocks) * begun.plan.blocks.nbytes
    assert held["blocks for more requests"].nbytes == spare
    assert held["the unused block"].nbytes == begun.plan.blocks.nbytes
    titles = {ledger.account.title: 0 for cost in costs for ledger in cost.ledgers}
    for cost in costs:
        for ledger in cost.ledgers:
            titles[ledger.account.title] += ledger.total
    for title, nbytes in titles.items():
        assert held[title].nbytes == nbytes
    for name in ("ends of last blocks", "rest of state blocks", "rest of tail blocks"):
        (reason,) = {rest.reason for cost in costs for rest in cost.rests if rest.name == name}
        total = sum(rest.nbytes for cost in costs for rest in cost.rests if rest.name == name)
        assert (held[name].nbytes, held[name].look, str(held[name].note)) == (total, "other", reason)


def test_every_kind_of_memory_has_its_look() -> None:
    card = answer("offloaded").card
    assert card is not None
    looks = {segment.name: segment.look for segment in card.segments}
    begun = begin(kv.plan({**TP4, **GIVEN["offloaded"][0]}, engine="vllm-0.33.0", gpu="h200"), MemoryGiven())
    of = {ledger.account.name: looks[ledger.account.title]
          for ledger in workload_cost(begun.plan.blocks, Workload(131072, 1)).ledgers}  # fmt: skip
    assert {of["latent_rows"], of["mtp_layer"]} == {"latent"}
    assert (of["index_keys"], of["kda_state"], of["compress_tail"]) == ("index", "states", "other")
    assert looks["too little for a block"] == looks["blocks for more requests"] == "free"


def test_what_is_before_the_blocks_is_named_where_it_is_estimated() -> None:
    for name in ("estimated", "offloaded", "measured"):
        found = answer(name)
        assert found.card is not None
        memory = found.start.memory
        before = [segment for segment in found.card.segments if segment.look == "loaded"]
        if name == "measured":
            (one,) = before
            assert (one.name, one.nbytes) == ("everything beside the blocks", (143771 << 20) - memory.nbytes)
            assert not one.estimated and one.note == "Available KV cache memory"
            continue
        parts = {part.name: part for part in memory.parts[1:]}
        offloaded = parts.pop("offloaded weights", None)
        assert (offloaded is not None) == (name == "offloaded")
        assert [segment.name for segment in before] == [*parts]
        for segment in before:
            part = parts[segment.name]
            less = offloaded.gib if offloaded is not None and segment.name == "target weights" else 0.0
            assert segment.nbytes == int((-part.gib - less) * GIB) and segment.note == part.source
            assert segment.estimated == (part.how == "estimated")
            assert segment.outside == (segment.name in ("kept by the driver", "left to others"))
        assert {segment.estimated for segment in before} == {True, False}


def test_memory_that_is_known_moves_nothing_of_the_map() -> None:
    for name, moved in (("estimated", True), ("measured", False)):
        card = answer(name).card
        assert card is not None
        last = {segment.name: segment.estimated for segment in card.segments[-2:]}
        assert last == {"blocks for more requests": moved, "too little for a block": moved}
        assert not any(segment.estimated for segment in card.segments if segment.look in ("latent", "states", "other"))


def test_a_map_of_no_request_has_the_unused_block_alone() -> None:
    """One request of the wanted length does not fit: nothing is filled, and one block is never given out."""
    plan = kv.plan({**TP4, "max_model_len": 131072}, engine="vllm-0.33.0", gpu="h200")
    card = card_map(begin(plan, MemoryGiven()), parse_contexts("200000"), 3)
    assert card.requests == 0
    names = [segment.name for segment in card.segments if segment.look != "loaded"]
    assert names == ["the unused block", "blocks for more requests", "too little for a block"]


def test_a_card_that_is_over_is_an_alarm() -> None:
    """Memory that flags give beyond the card's end: the last bar is what is missing."""
    plan = kv.plan({**TP4, "num_gpu_blocks_override": 12000}, engine="vllm-0.33.0", gpu="h200")
    card = card_map(begin(plan, MemoryGiven()), parse_contexts("8k"), 1)
    last = card.segments[-1]
    assert last.nbytes < 0 and last.look == "alarm"
    assert sum(segment.nbytes for segment in card.segments) == card.total_bytes


def frontier_of(found: ReportAnswer) -> FrontierChart:
    chart = figure(frontier_section(found)).chart
    assert isinstance(chart, FrontierChart)
    return chart


def test_the_frontier_marks_what_is_planned() -> None:
    chart = frontier_of(answer())
    assert chart.planned == (131072, 20) and len(frontier_section(answer()).blocks) == 2
    mixed = answer("estimated", "0.8:8k,0.2:128k", 40)
    assert frontier_of(mixed).planned == (0.8 * 8192 + 0.2 * 131072, 40)
    said = [str(block.text) for block in frontier_section(mixed).blocks if isinstance(block, Line)]
    assert said[1:] == ["A mix of lengths is marked at its mean."]
    short = answer()._replace(
        advised=answer().advised._replace(demand=answer().advised.demand._replace(mean_context=0.5))
    )
    assert frontier_of(short).planned[0] == 1.0
    assert str(figure(frontier_section(answer())).numbers.folded) == "The numbers"  # type: ignore[union-attr]


def test_a_region_has_the_colour_of_its_limit() -> None:
    chart = frontier_of(answer("estimated", "8k", 1))
    looks = {str(reach.limit): reach.look for reach in chart.reaches}
    assert looks == {"blocks": "loaded"}
    few = kv.plan({**TP4, "max_num_seqs": 8}, engine="vllm-0.33.0", gpu="h200")
    capped = answer_report(few, Demand(parse_contexts("8k"), 1), MemoryGiven())
    looks = {str(reach.limit): reach.look for reach in frontier_of(capped).reaches}
    assert looks == {"blocks": "loaded", "--max-num-seqs": "cap"}


def test_the_dashed_line_names_its_flags() -> None:
    fewer, served, off = answer(), answer("estimated", "128k", 40), answer("without caching")
    assert fewer.beside == "--no-enable-prefix-caching"
    assert served.beside == served.advised.text != ""
    assert (off.beside, frontier_of(off).best_title) != ("", "") and off.beside == ""
    for found, title in ((fewer, f"with {fewer.beside}"), (off, "nothing changed")):
        assert str(frontier_of(found).best_title) == title
        (numbers,) = tables((figure(frontier_section(found)),))
        assert titles(numbers)[-1] == title


def test_advised_flags_whose_memory_is_estimated_are_not_drawn() -> None:
    """Beside a log's memory a change of what is loaded has another certainty: fewer states are drawn instead."""
    found = answer("measured", "128k", 80)
    assert found.advised.options and found.advised.options[0].estimated
    assert found.beside == "--no-enable-prefix-caching"


def panels_of(found: ReportAnswer) -> PanelChart:
    (section,) = prices_section(found)
    chart = figure(section).chart
    assert isinstance(chart, PanelChart)
    return chart


@pytest.mark.parametrize("name", ["shared", "measured"])
def test_every_price_is_a_bar_with_its_number(name: str) -> None:
    found, estimated = answer(name), name == "shared"
    (section,) = prices_section(found)
    chart = panels_of(found)
    prices = [price for price in found.start.prices or () if price.failure is None]
    assert chart.aligned and str(section.title) == str(chart.title) == "What each knob buys"
    numbers = figure(section).numbers
    assert numbers is not None and str(numbers.folded) == "The numbers"
    assert len(numbers.rows) == len(found.start.prices or ())
    assert (len(prices) < len(numbers.rows)) == (name == "shared")
    values = {
        "requests": [price.requests for price in prices],
        "longest context": [price.longest_context for price in prices],
        "fixed a request": [price.fixed_bytes for price in prices],
    }
    looks = {"requests": "loaded", "longest context": "latent", "fixed a request": "states"}
    alt = str(chart.alt)
    shown = {str(panel.title): panel for panel in chart.panels}
    assert "requests" in shown and "fixed a request" in shown
    for title, panel in shown.items():
        by_name = {(str(bar.name), str(bar.note)): bar for bar in panel.bars}
        for price, value in zip(prices, values[title], strict=True):
            moved = f"{price.before} → {price.after}" + (f" ({price.gpus} more GPUs)" if price.gpus else "")
            bar = by_name.get((price.knob, moved))
            assert value is not None
            text = written(title, value, estimated)
            assert f"{price.knob} {moved}: " in alt and f"{title} {text}" in alt
            if bar is not None:
                assert bar == Bar(price.knob, value, looks[title], estimated and title != "fixed a request",  # type: ignore[arg-type]
                                  text=text, note=bar.note)  # fmt: skip
    assert any(price.gpus for price in prices) == (name == "shared")


def written(title: str, value: int, estimated: bool) -> str:
    sign = "+" if value > 0 else "-" if value < 0 else ""
    if title == "fixed a request":
        return f"+{binary(value)}" if value > 0 else binary(value)
    return sign + (three_digits(abs(value)) if estimated else whole(abs(value)))


def test_prices_that_are_all_refused_stay_a_table() -> None:
    found = answer("shared")
    refused = tuple(price for price in found.start.prices or () if price.failure is not None)
    for prices in (refused, ()):
        made = found._replace(start=found.start._replace(prices=prices))
        (section,) = prices_section(made)
        assert not any(isinstance(block, Figure) for block in section.blocks)
    assert prices_section(found._replace(start=found.start._replace(prices=None))) == ()
