"""What the page of `kvplan solve` says of an answer: where numbers are marked as estimates, tones, what is left out."""

from functools import cache
from typing import Any

import pytest

from glm_kvplan.contexts import parse_contexts
from glm_kvplan.engines.planner import plan
from glm_kvplan.engines.sglang.answers.host_page import host_line, host_section, host_sections
from glm_kvplan.engines.sglang.answers.map_chart import map_stack
from glm_kvplan.engines.sglang.answers.map_shown import MapShown
from glm_kvplan.engines.sglang.answers.solve_answer import SolveAnswer, answer_solve
from glm_kvplan.engines.sglang.answers.solve_page import price_move, solve_page
from glm_kvplan.engines.sglang.sizing.memory_map import FREE
from glm_kvplan.engines.sglang.sizing.prices import Price
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.show.format import three_digits
from glm_kvplan.show.page import Cell, Line, Section, Table
from glm_kvplan.units import GB, GIB
from glm_kvplan.workload import UNKNOWN_HOST, HostGiven

EAGLE = {"tp_size": 4, "speculative_algorithm": "EAGLE"}
UNKNOWN_DRAFT = {"tp_size": 4, "speculative_algorithm": "EAGLE3", "speculative_draft_model_path": "/nowhere/draft"}
HICACHE = {"tp_size": 8, "dp_size": 8, "enable_dp_attention": True, "enable_hierarchical_cache": True}
B200, H200 = ("b200", MemoryGiven(177.0, 126.0)), ("h200", MemoryGiven())
STARTS: dict[str, tuple[dict[str, Any], tuple[str, MemoryGiven], HostGiven]] = {
    "measured": (EAGLE, B200, UNKNOWN_HOST),
    "estimated": ({"tp_size": 8}, H200, UNKNOWN_HOST),
    "few": ({"tp_size": 8, "max_running_requests": 4}, H200, UNKNOWN_HOST),
    "bound": (UNKNOWN_DRAFT, B200, UNKNOWN_HOST),
    "bound by estimate": (UNKNOWN_DRAFT, ("b200", MemoryGiven(weights_gib=40.0, draft_weights_gib=3.0)),
                          UNKNOWN_HOST),
    "refused": ({"tp_size": 4, "max_mamba_cache_size": 9000}, ("b200", MemoryGiven(176.25, 130.0)), UNKNOWN_HOST),
    "short": ({"tp_size": 4, "mem_fraction_static": 0.999}, ("b200", MemoryGiven(176.25, 130.0)), UNKNOWN_HOST),
    "tight": ({"tp_size": 4, "mem_fraction_static": 0.93}, ("b200", MemoryGiven(176.25, 130.0)), UNKNOWN_HOST),
    "nobody": ({"tp_size": 4, "max_total_tokens": 64000}, B200, UNKNOWN_HOST),
    "no radix": ({"tp_size": 8, "disable_radix_cache": True}, H200, UNKNOWN_HOST),
    "small host": ({**HICACHE, "hicache_ratio": 2.0}, H200, HostGiven(host_bytes=64 * GIB)),
    "large host": (HICACHE, H200, HostGiven(host_bytes=4000 * GIB, pod_bytes=3000 * GIB)),
    "any host": (HICACHE, H200, UNKNOWN_HOST),
    "host by size": ({"tp_size": 4, "enable_hierarchical_cache": True, "hicache_size": 90}, B200, UNKNOWN_HOST),
}  # fmt: skip


@cache
def answer(kind: str, mix: str = "", prices: bool = False) -> SolveAnswer:
    flags, (gpu, memory), host = STARTS[kind]
    made = plan(flags, gpu=gpu, engine="0.5.23")
    return answer_solve(made, memory, None, host, mix=parse_contexts(mix) if mix else None, with_prices=prices)


def sections(kind: str, **options: Any) -> dict[str, Section]:
    return {str(section.title): section for section in solve_page(answer(kind, **options)).sections}


def verdict(kind: str, mix: str = "") -> tuple[str, str, list[str]]:
    found = solve_page(answer(kind, mix)).verdict
    assert found is not None
    return str(found.text), found.tone, list(map(str, found.remarks))


def lines(section: Section) -> list[str]:
    return [str(block.text) for block in section.blocks if isinstance(block, Line)]


def table(section: Section) -> Table:
    (found,) = (block for block in section.blocks if isinstance(block, Table))
    return found


# --- the verdict -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "begins", "tone"),
    [
        ("measured", "Yes: 48 requests of 131,072 tokens fit at once on 4 x B200", "good"),
        ("few", "Yes: 4 requests of", "good"),  # estimated, and the same at both ends
        ("bound", "Yes: at most 48 requests of", "careful"),
        ("tight", "Yes: ", "careful"),
        ("nobody", "It starts, but no request of 131,072 tokens fits on 4 x B200, bound by tokens", "careful"),
        ("refused", "No: the engine refuses to start: ", "bad"),
        ("short", "No: the pools with what the budget does not charge take 1.1 GiB more", "bad"),
        ("small host", "No: the host's memory does not hold the HiCache pools.", "bad"),
        ("large host", "Yes: ~", "good"),
    ],
)
def test_verdicts(kind: str, begins: str, tone: str) -> None:
    text, found, _ = verdict(kind)
    assert text.startswith(begins) and found == tone


def test_whether_a_server_starts_at_all() -> None:
    """Not where the last byte is missing; that the first prompt dies is no matter of the start."""
    kinds = ("measured", "tight", "refused", "short", "small host", "large host")
    assert [answer(kind).holds for kind in kinds] == [True, True, False, False, False, True]
    found = answer("measured")
    assert found.headroom is not None
    for free, holds in ((0, True), (-1, False)):
        assert found._replace(headroom=found.headroom._replace(free_bytes=free, verdict="short")).holds is holds


def test_an_estimated_number_has_its_span() -> None:
    served = answer("estimated").served
    assert served is not None and served.low < served.high
    span = f"~{three_digits(served.requests)} ({three_digits(served.low)} to {three_digits(served.high)})"
    assert f"Yes: {span} requests" in verdict("estimated")[0]
    text, tone, _ = verdict("bound by estimate")
    assert text.startswith("Yes: at most ") and "~" not in text and tone == "careful"


def test_remarks_of_a_verdict() -> None:
    """The memory first, then that it is an upper bound; what is promised of a mix before both."""
    assert [len(verdict(kind)[2]) for kind in ("measured", "bound", "refused", "short")] == [1, 2, 1, 1]
    assert "is not counted" in verdict("bound")[2][1]
    mixed = verdict("estimated", "0.8:8k,0.2:128k")[2]
    assert len(mixed) == 2 and mixed[0].startswith("99% of the time") and "before the load" in mixed[1]


# --- which sections --------------------------------------------------------------------------------------------------


def test_sections_and_which_go_first_where_one_screen_is_all() -> None:
    found = sections("estimated", prices=True)
    assert [*found][:5] == ["What the engine sizes", "What binds", "What a slot costs", "Memory map", "Headroom"]
    spare = sorted((section.spare, title) for title, section in sections("large host").items() if section.spare)
    assert [title for _, title in spare] == [
        "Memory map", "What a slot costs", "The host pools", "What binds", "Headroom", "What the engine sizes",
    ]  # fmt: skip
    assert len({number for number, _ in spare}) == len(spare)
    assert sections("tight")["Headroom"].spare == 0 == sections("large host")["Host memory (HiCache)"].spare
    assert [*found][5].startswith("prices: ") and not [title for title in sections("estimated") if "prices" in title]
    loud = [title for title, section in sections("large host").items() if not section.quiet]
    assert loud == ["Host memory (HiCache)", "The host pools"] and not [*found.values()][5].quiet
    assert "Headroom" not in sections("short")  # the verdict says it
    assert [*sections("refused")] == ["Refused"] and sections("refused")["Refused"].quiet


def test_the_headroom_has_the_tone_of_its_verdict() -> None:
    for kind, tone in (("measured", "good"), ("tight", "careful")):
        (line,) = sections(kind)["Headroom"].blocks
        headroom = answer(kind).headroom
        assert isinstance(line, Line) and headroom is not None
        assert (line.text, line.tone) == (headroom.message, tone)


def test_a_refused_start_names_what_helps() -> None:
    found = answer("refused")
    assert found.remedies
    told = lines(sections("refused")["Refused"])
    assert told == ["each of these alone lets it start:", *(f"  {remedy.text}" for remedy in found.remedies)]
    page = solve_page(found._replace(remedies=()))
    assert lines(page.sections[0]) == ["no single flag lets it start"]


# --- sizes and limits ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["measured", "estimated", "few", "bound"])
def test_a_size_is_marked_where_the_estimate_moves_it(kind: str) -> None:
    found, shown = answer(kind), table(sections(kind)["What the engine sizes"])
    names = ("max_total_num_tokens", "max_mamba_cache_size", "max_running_requests")
    assert not shown.head and [column.kind for column in shown.columns] == ["text", "count", "text"]
    for row, name, size, place in zip(shown.rows, names, found.sizes, range(3), strict=True):
        title, value, span = row.cells
        assert isinstance(title, Cell) and isinstance(value, Cell) and isinstance(span, Cell)
        low, high = (end and end[place] for end in found.span)
        assert (title.value, title.tone, value.value, value.tone) == (name, "strong", size, "strong")
        assert value.estimated == (low != high) and value.at_most == (kind == "bound")
        if kind == "bound":
            assert str(span.value) == "the draft model is not counted"
        else:
            assert ("within the estimate" in str(span.value)) == (low != high)


def test_an_end_at_which_it_is_refused() -> None:
    refused = answer("estimated")
    page = solve_page(refused._replace(span=(None, refused.span[1])))
    spans = [str(row.cells[2].value) for row in table(page.sections[0]).rows if isinstance(row.cells[2], Cell)]
    assert all(span.startswith("refused to ") for span in spans) and len(spans) == 3


def test_workers_are_named_where_there_are_several() -> None:
    (line,) = lines(sections("large host")["What the engine sizes"])
    assert line == "per DP worker; there are 8"
    assert lines(sections("measured")["What the engine sizes"]) == []


def test_limits_have_their_numbers_where_the_memory_is_known() -> None:
    limits = answer("measured").limits
    assert limits is not None and len(limits.requests) > 1 and len(limits.tokens) == 1
    tokens, requests = lines(sections("measured")["What binds"])
    assert tokens == f"tokens are set by {limits.tokens[0].name} ({limits.tokens[0].text})"
    second = limits.requests[1]
    assert requests.endswith(f" ({limits.requests[0].text}), then {second.name} at {second.value:,}")
    split = lines(sections("measured")["What a slot costs"])
    assert split[0] == f"state slots follow {limits.state_slots.name} ({limits.state_slots.text})"
    assert split[1] == f"one state slot costs as much as {int(limits.tokens_per_slot):,} tokens"
    limits = answer("estimated").limits
    assert limits is not None
    tokens, requests = lines(sections("estimated")["What binds"])
    assert tokens == f"tokens are set by {limits.tokens[0].name}"
    assert requests.endswith(f", then {limits.requests[1].name} at ~{three_digits(limits.requests[1].value)}")
    assert lines(sections("estimated")["What a slot costs"])[0] == f"state slots follow {limits.state_slots.name}"


def test_slots_that_cost_no_tokens_are_not_weighed() -> None:
    limits = answer("measured").limits
    assert limits is not None
    page = solve_page(answer("measured")._replace(limits=limits._replace(tokens_per_slot=float("inf"))))
    assert len(lines(page.sections[2])) == 1


# --- prices ----------------------------------------------------------------------------------------------------------


def test_prices_are_estimates_where_the_memory_is() -> None:
    found = answer("estimated", prices=True)
    assert found.prices
    (section,) = (section for title, section in sections("estimated", prices=True).items() if "prices" in title)
    assert lines(section) == ["~ from the middle of the estimate, to three digits"]
    for price, row in zip(found.prices, table(section).rows, strict=True):
        knob, moved, *deltas, free = row.cells
        assert knob == price.knob and isinstance(moved, Cell) and moved.value == price_move(price)
        assert [cell.value for cell in deltas if isinstance(cell, Cell)] == [
            price.total_tokens, price.total_slots, price.total_requests,
        ]  # fmt: skip
        assert all(isinstance(cell, Cell) and cell.estimated for cell in deltas) and free == price.free_bytes
    kinds = [column.kind for column in table(section).columns]
    assert kinds == ["text", "text", "change", "change", "change", "gib_change"]


def test_prices_of_memory_that_is_known() -> None:
    """Only a knob that moves the weights has estimated prices; of one that is refused there is the kind alone."""
    found = answer("measured", prices=True)
    assert found.prices is not None
    moved = {price.knob for price in found.prices if price.estimated}
    page = solve_page(found._replace(prices=(*found.prices, found.prices[0]._replace(failure="out_of_memory"))))
    section = page.sections[-1]
    assert lines(section) == [] and moved
    *shown, refused = table(section).rows
    for row in shown:
        tilde = {cell.estimated for cell in row.cells[2:5] if isinstance(cell, Cell)}
        assert tilde == {row.cells[0] in moved}
    assert refused.cells[3:] == (None, None, None) and isinstance(refused.cells[2], Cell)
    assert (str(refused.cells[2].value), refused.cells[2].tone) == ("refused: out of memory", "bad")


@pytest.mark.parametrize(
    ("gpus", "estimated", "text"),
    [
        (0, False, "4 → 8"),
        (4, False, "4 → 8 (4 more GPUs)"),
        (0, True, "4 → 8 (its memory estimated)"),
        (4, True, "4 → 8 (4 more GPUs, its memory estimated)"),
    ],
)
def test_a_move_and_what_it_takes(gpus: int, estimated: bool, text: str) -> None:
    price = answer("measured", prices=True)
    assert price.prices is not None
    one: Price = price.prices[0]._replace(before="4", after="8", gpus=gpus, estimated=estimated)
    assert str(price_move(one)) == text


# --- the map ---------------------------------------------------------------------------------------------------------


def drawn(kind: str) -> MapShown:
    found = answer(kind).memory_map
    assert found is not None
    return found


def test_bars_of_the_map() -> None:
    memory = drawn("measured")
    stack = map_stack(memory)
    assert [(str(bar.name), bar.value) for bar in stack.bars] == [(each.name, each.nbytes) for each in memory.segments]
    assert sum(bar.value for bar in stack.bars) == stack.total == memory.total_bytes
    assert {look for look, _ in stack.looks} == {bar.look for bar in stack.bars}
    ((mark, meaning),) = stack.marks
    assert str(meaning) == "outside the engine's budget"
    for bar, segment in zip(stack.bars, memory.segments, strict=True):
        assert bar.mark == (mark if segment.components and not segment.charged else "")
        assert bar.estimated == (segment.certainty == "estimated")
        looks = ("latent", "index", "states", "other") if segment.components else ("loaded", "free")
        assert bar.look in looks and (bar.look == "free") == (segment.name == FREE)
        if segment.components:
            assert bar.look == (segment.ledger or "other")
    names = frozenset({memory.segments[2].name})
    assert [bar.name for bar in map_stack(memory, names).bars if bar.estimated] == [
        bar.name for bar, each in zip(stack.bars, memory.segments, strict=True) if bar.estimated or each.name in names
    ]


def test_small_parts_are_one_bar_where_they_are_folded() -> None:
    """Below a 250th of the whole, and outside the budget; before what stays free."""
    memory = drawn("measured")
    small = [each for each in memory.segments
             if each.components and not each.charged and each.nbytes * 250 < memory.total_bytes]  # fmt: skip
    assert len(small) > 1
    stack = map_stack(memory, frozenset(), fold=True)
    assert sum(bar.value for bar in stack.bars) == memory.total_bytes
    *_, folded, free = stack.bars
    assert (str(folded.name), folded.value) == (f"{len(small)} small pools", sum(each.nbytes for each in small))
    assert (folded.look, folded.mark, folded.estimated) == ("other", "*", False)
    assert str(free.name) == FREE and len(stack.bars) == len(memory.segments) - len(small) + 1
    assert map_stack(memory, frozenset({small[0].name}), fold=True).bars[-2].estimated
    edge = memory._replace(total_bytes=small[0].nbytes * 250)
    kept = {str(bar.name) for bar in map_stack(edge, fold=True).bars}
    assert small[0].name in kept
    pair = memory._replace(segments=tuple(each for each in memory.segments if each not in small[2:]))
    assert "2 small pools" in [str(bar.name) for bar in map_stack(pair, fold=True).bars]
    single = memory._replace(segments=tuple(each for each in memory.segments if each not in small[1:]))
    assert [str(bar.name) for bar in map_stack(single, fold=True).bars] == [each.name for each in single.segments]


def test_what_is_too_much_is_an_alarm() -> None:
    last = map_stack(drawn("short")).bars[-1]
    assert last.value < 0 and last.look == "alarm"
    memory = drawn("short")
    for left, look in ((-1, "alarm"), (0, "free")):
        edge = memory._replace(segments=(*memory.segments[:-1], memory.segments[-1]._replace(nbytes=left)))
        assert map_stack(edge).bars[-1].look == look


def test_pools_that_an_estimate_moves_are_marked_on_the_map() -> None:
    """Running requests are fixed by the flag, so what holds a row each is exact, and so is nothing that holds slots."""
    (figure,) = sections("few")["Memory map"].blocks
    bars = {str(bar.name): bar for bar in figure.chart.bars}
    units = {each.name: each.unit for each in drawn("few").segments}
    for name, unit in units.items():
        if unit in ("token", "state slot"):
            assert bars[name].estimated, name
        if unit == "request row":
            certainty = next(each.certainty for each in drawn("few").segments if each.name == name)
            assert bars[name].estimated == (certainty == "estimated"), name
    assert {"token", "state slot", "request row"} <= {*units.values()}


# --- host pools ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "sized"),
    [
        ("small host", "sized by ratio: 2 times the device pools"),
        ("large host", "sized by the automatic rule: 2.000 times the device pools"),
        ("any host", "sized by ratio: at most 2 times the device pools; the engine lowers"),
        ("host by size", "sized by --hicache-size, GB a rank: "),
    ],
)
def test_how_host_pools_are_sized(kind: str, sized: str) -> None:
    """Before the pools where it is known how much a host has; else it is all that is said of the fit."""
    host = answer(kind).host
    assert host is not None
    fit, pools = map(lines, host_sections(host))
    assert (fit if host.fit is None else pools)[0].startswith(sized)
    assert sum(line.startswith("sized by") for line in (*fit, *pools)) == 1
    whole = host_section(host)
    assert str(whole.title) == "Host memory (HiCache)" and lines(whole) == [*fit, *pools]


def test_whether_host_pools_fit() -> None:
    large, small = answer("large host").host, answer("small host").host
    assert large is not None and large.fit is not None and small is not None and small.fit is not None
    told = [block for block in next(host_sections(large)).blocks if isinstance(block, Line)]
    known = "4000 GiB on a host and 3000 GiB for its container, 10 GiB of it reserved by the engine"
    assert str(told[0].text) == f"fits: {known}: {large.fit.spare_bytes / GB:,.2f} GB to spare"
    ratio, size = large.fit.largest_ratio, large.fit.largest_size
    assert str(told[1].text) == f"the most that fits: --hicache-ratio {ratio:g} or --hicache-size {size}"
    assert [line.tone for line in told] == ["good", ""]
    told = [block for block in next(host_sections(small)).blocks if isinstance(block, Line)]
    assert [line.tone for line in told] == ["bad", "bad", ""]
    assert str(told[0].text) == f"the engine refuses to start: {small.fit.refused}"
    assert str(told[1].text).endswith(f": {-small.fit.spare_bytes / GB:,.2f} GB too little")
    edge = large._replace(fit=large.fit._replace(spare_bytes=0, largest_ratio=None))
    assert lines(next(host_sections(edge)))[0].endswith(": 0.00 GB to spare")
    assert lines(next(host_sections(edge)))[1] == f"the most that fits: --hicache-size {size}"
    nothing = large._replace(fit=large.fit._replace(largest_ratio=None, largest_size=None))
    assert lines(next(host_sections(nothing)))[1] == "no ratio and no size fits"


def test_a_pool_is_said_of_a_rank_and_of_a_host() -> None:
    host = answer("large host").host
    assert host is not None
    shown = table([*host_sections(host)][1])
    assert [column.kind for column in shown.columns] == ["text", "count", "count", "count", "gb", "gb"]
    assert str(shown.columns[-1].title) == "host, 8 ranks"
    units = {"kv": ("tokens", "token"), "mamba": ("slots", "slot"), "indexer": ("tokens", "token")}
    *rows, total = shown.rows
    for row, pool in zip(rows, host.fullest.pools, strict=True):
        held, unit = units[pool.name]
        assert [str(cell) for cell in row.cells[:4]] == [
            pool.name.upper(), f"{pool.units:,} {held}", str(pool.pages), f"{pool.bytes_per_unit:,} B/{unit}",
        ]  # fmt: skip
        assert row.cells[4:] == (pool.nbytes, pool.bytes_all_ranks)
    assert total.cells[4:] == (host.bytes_per_rank, max(host.bytes_by_host))


def test_what_is_said_below_the_pools() -> None:
    found = answer("large host").host
    assert found is not None
    told = lines([*host_sections(found)][1])
    assert told[1].startswith("~ the device pools' sizes are estimated")
    assert any("of staging buffers" in line for line in told)
    assert f"KV for {found.coverage.kv_prefixes:,}, states for {found.coverage.state_prefixes:,}" in told[-2]
    level = found.level
    assert level is not None and told[-1].startswith(f"--max-mamba-cache-size {level.max_mamba_cache_size} would hold ")
    assert f"hold {level.coverage.usable_prefixes:,} whole" in told[-1]
    assert f"leave {level.sizes.tokens:,} tokens and {level.sizes.running_requests} requests" in told[-1]
    plain = found._replace(certainty="exact", level=None, balance=None, packed_draft_layers=1)
    told = lines([*host_sections(plain)][1])
    bare = plain._replace(stages=tuple(each._replace(staging_bytes=0) for each in plain.stages))
    assert not any("staging" in line for line in lines([*host_sections(bare)][1]))
    assert not any(line.startswith("~") for line in told) and "prefixes of" in told[-1]
    assert "the draft's layers are packed into these pools: 1 of KV's layers" in told
    assert not any("packed" in line for line in lines([*host_sections(found)][1]))


@pytest.mark.parametrize(
    ("available", "options", "text", "tone"),
    [
        (None, {}, "host pools of 2.00 GB, held against nothing", "careful"),
        (None, {"at_most": True}, "host pools of up to 2.00 GB, held against nothing", "careful"),
        (0, {"fits": False}, "no host pools fit a host: these take 2.00 GB, there are 0.00 GB beside", "bad"),
        (3 * GB, {}, "host pools of 2.00 GB fit a host: 3.00 GB beside", "good"),
        (1 * GB, {"fits": False}, "no host pools fit a host: these take 2.00 GB, there are 1.00 GB beside", "bad"),
        (-5 * GB, {"fits": False}, "no host pools fit a host: these take 2.00 GB, there are 0.00 GB beside", "bad"),
    ],
)
def test_host_pools_in_one_line(available: int | None, options: dict[str, bool], text: str, tone: str) -> None:
    line = host_line(2 * GB, available, **options)
    assert str(line.text).startswith(text) and line.tone == tone
