"""The page of `kvplan solve` of a vLLM launch: the boot line, its meaning, and `~` only where an estimate moves it."""

from functools import cache

import pytest
from vllm_pages import cells, laid_out, lines, rows, section, spare, table, tables, titles, tones

import glm_kvplan as kv
from glm_kvplan.contexts import parse_contexts
from glm_kvplan.engines.mix_words import promised
from glm_kvplan.engines.vllm.answers.solve_answer import ServedShown, SolveAnswer, answer_solve
from glm_kvplan.engines.vllm.answers.solve_page import solve_page
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.show.format import decimal, gib, three_digits, whole
from glm_kvplan.show.page import Cell
from glm_kvplan.units import GIB

GIVEN: dict[str, tuple[dict[str, object], float | None]] = {
    "estimated": ({}, None),
    "measured": ({"max_model_len": 131072}, 45.07),  # two decimals: several numbers of blocks
    "exact": ({"max_model_len": 131072}, 45.0701),
    "all ends": ({"max_model_len": 131072, "kv_cache_memory_bytes": 8 << 30, "max_num_seqs": 64}, None),
    "fitted": ({"max_model_len": -1, "max_num_seqs": 64}, 4.0001),
    "few at once": ({"max_num_seqs": 4}, None),
    "refused": ({}, 4.0),
    "lacking": ({"tensor_parallel_size": 1}, None),
    "shared": ({"decode_context_parallel_size": 2}, None),
    "shared, measured": ({"decode_context_parallel_size": 2}, 45.07),
    "one state": ({"enable_prefix_caching": False, "num_gpu_blocks_override": 4000}, 45.07),
}


@cache
def answer(name: str, mix: str | None = None, prices: bool = False) -> SolveAnswer:
    flags, memory = GIVEN[name]
    plan = kv.plan({"tensor_parallel_size": 4, **flags}, engine="vllm-0.33.0", gpu="h200")
    contexts = None if mix is None else parse_contexts(mix)
    return answer_solve(plan, MemoryGiven(available_gib=memory), mix=contexts, with_prices=prices)


def about(name: str, value: int) -> str:
    return f"~{three_digits(value)}" if name == "estimated" else whole(value)


def judged(found: SolveAnswer) -> tuple[str, str]:
    verdict = solve_page(found).verdict
    assert verdict is not None
    return str(verdict.text), verdict.tone


def remarks(found: SolveAnswer) -> list[str]:
    verdict = solve_page(found).verdict
    assert verdict is not None
    return [str(remark) for remark in verdict.remarks]


def row_of(found: SolveAnswer, length: int) -> ServedShown:
    (row,) = (row for row in found.served if row.longest == length and not row.mixed)
    return row


def test_the_verdict_counts_the_usual_request() -> None:
    found = answer("estimated")
    asked = row_of(found, 131072)
    assert asked.low < asked.requests < asked.high
    held = f"~{asked.requests} ({asked.low} to {asked.high})"
    assert judged(found) == (
        f"Yes: {held} requests of 131,072 tokens fit at once on 4 x H200, bound by blocks", "good"
    )  # fmt: skip
    known = row_of(answer("measured"), 131072)
    said = f"Yes: {known.requests} requests of 131,072 tokens fit at once on 4 x H200, bound by blocks"
    assert judged(answer("measured")) == (said, "good")
    few = "Yes: 4 requests of 131,072 tokens fit at once on 4 x H200, bound by --max-num-seqs"
    assert judged(answer("few at once")) == (few, "good")
    none = "It starts, but no request of 200,000 tokens fits on 4 x H200, bound by --max-model-len"
    assert judged(answer("measured", "200000")) == (none, "careful")


def test_a_low_end_without_a_request_is_careful() -> None:
    found = answer("estimated")
    rows = tuple(row._replace(low=0) if row.longest == 131072 else row for row in found.served)
    assert judged(found._replace(served=rows))[1] == "careful"


def test_a_refusal_names_its_source_where_there_is_one() -> None:
    found = answer("refused")
    assert found.failure is not None and found.failure.source
    text = f"No: vLLM refuses to start: {found.failure.reason}"
    assert judged(found) == (f"{text} ({found.failure.source})", "bad")
    assert judged(found._replace(failure=found.failure._replace(source=""))) == (text, "bad")


def test_a_mix_is_promised_and_a_length_is_not() -> None:
    found = answer("measured", "0.8:8k,0.2:128k")
    (mixed,) = (row for row in found.served if row.mixed)
    assert remarks(found) == [str(promised(mixed.confidence, mixed.mean_requests)), *remarks(answer("measured"))]
    assert judged(found)[0].startswith(f"Yes: {mixed.requests} requests of {mixed.contexts} tokens fit")


def test_sections_stand_in_their_order_and_leave_a_screen_in_theirs() -> None:
    printed = ("What vLLM prints, and what it means", True, 5)
    requests, request, block = ("Requests at once", True, 0), ("One request", True, 4), ("One block", True, 1)
    memory = ("The memory that is left for blocks", True, 2)
    assert laid_out(solve_page(answer("estimated")).sections) == [printed, requests, request, block, memory]
    assert laid_out(solve_page(answer("measured")).sections) == [printed, requests, request, block]
    assert laid_out(solve_page(answer("refused")).sections) == [("Refused", True, 0), request, block]
    priced = solve_page(answer("measured", None, True)).sections
    assert len(priced) == 5 and not priced[-1].quiet and not priced[-1].spare
    assert lines(solve_page(answer("measured")).lead) == [(str(answer("measured").head.layout), "muted")]


@pytest.mark.parametrize("name", ["estimated", "measured", "exact", "all ends", "fitted"])
def test_the_boot_line_and_what_it_means(name: str) -> None:
    found = answer(name)
    printed, said = found.printed, lines(solve_page(found).sections[0].blocks)
    line = printed.line
    if name == "estimated":
        line = (
            f"GPU KV cache size: ~{three_digits(printed.cache_tokens)} tokens, Maximum concurrency for 1,048,576 "
            f"tokens per request: ~{printed.concurrency:.1f}x"
        )
    needed = row_of(found, printed.max_model_len).blocks
    ends = (found.longest_context, found.tokens_of_all_blocks)
    longest = "--max-model-len ends it, not the blocks" if ends[1] > ends[0] else "then the blocks end"
    tokens = about(name, ends[0]) if ends[1] == ends[0] and name == "estimated" else whole(ends[0])
    wanted = [
        (f"vLLM prints: {line}", "strong"),
        (f"that is {about(name, found.num_blocks)} blocks over the {needed} of one request of "
         f"{printed.max_model_len:,} tokens, in tokens; not a capacity", ""),
        (f"one request can have {tokens} tokens: {longest}", ""),
    ]  # fmt: skip
    if name == "measured":
        low, high = found.span
        assert low < high
        wanted.insert(2, (f"a log prints two decimals of the memory: {low:,} to {high:,} blocks", "muted"))
    assert said == wanted
    assert ("then the blocks end" in said[-1][0]) == (name == "fitted")


def test_an_estimate_that_moves_nothing_is_exact() -> None:
    """Blocks that a flag fixes have the same number at both ends of the memory."""
    found = answer("estimated")
    fixed = found._replace(
        printed=found.printed._replace(
            low_cache_tokens=found.printed.cache_tokens, high_cache_tokens=found.printed.cache_tokens
        ),
        span=(found.num_blocks, found.num_blocks),
    )
    said = [text for text, _ in lines(solve_page(fixed).sections[0].blocks)]
    assert said[0] == f"vLLM prints: {found.printed.line}" and f"that is {found.num_blocks:,} blocks" in said[1]
    half = found._replace(span=(found.num_blocks, found.num_blocks + 1))
    assert "that is ~" in lines(solve_page(half).sections[0].blocks)[1][0]


@pytest.mark.parametrize("name", ["estimated", "measured", "few at once"])
def test_requests_at_once_are_the_answers(name: str) -> None:
    found = answer(name)
    served = table(solve_page(found), "Requests at once")
    assert titles(served) == [
        "context",
        "blocks",
        "a request",
        "unused",
        "at once",
        "between",
        "their tokens",
        "ended by",
    ]
    assert spare(served) == ["between", "unused"]
    assert str(served.title) == "requests of the whole deployment that run at once"
    wanted = []
    for row in found.served:
        moved = row.low != row.high
        mark = "~" if moved and name != "measured" else ""
        number = three_digits if mark else whole
        between = f"{three_digits(row.low)} to {three_digits(row.high)}" if moved else ""
        wanted.append([row.contexts, whole(row.blocks), decimal(row.nbytes), f"{row.unused_share:.0%}",
                       mark + number(row.requests), between, mark + number(row.tokens), row.limit])  # fmt: skip
    assert rows(served) == wanted
    assert {cell.tone for cell in cells(served, "at once")} == {"strong"}
    assert {cell.tone for cell in cells(served, "between")} == {"muted"}
    assert ("~" in wanted[0][4]) == (name == "estimated")


def test_a_request_and_a_block_in_words() -> None:
    for name in ("measured", "one state"):
        found = answer(name)
        fixed, one, block = found.request.fixed, found.request, found.block
        states = "1 state" if name == "one state" else "3 states"
        page = solve_page(found)
        assert lines(section(page, "One request").blocks) == [
            (f"before its first token a request holds {fixed.blocks} blocks: {decimal(fixed.nbytes)} a GPU, what "
             f"{fixed.tokens:,} tokens would take", ""),
            (f"  {states} in each of {one.state_groups} state groups, and one block of the tail", "muted"),
        ]  # fmt: skip
        assert lines(section(page, "One block").blocks) == [
            (f"a block takes {block.nbytes:,} bytes a GPU and holds {block.tokens:,} tokens ({block.token_bytes:,} "
             f"bytes a token): {block.reason}", "")
        ]  # fmt: skip
        uses = table(page, "One block")
        assert titles(uses) == ["a block of", "groups", "layers", "used", "padding", "left over", "unused"]
        assert spare(uses) == ["groups", "layers"]
        held = {"tokens": "rows and index keys", "states": "KDA state", "tail": "tail"}
        assert rows(uses) == [
            [held[use.holds], whole(use.groups), whole(use.layers), whole(use.used_bytes), whole(use.padding_bytes),
             whole(use.rest_bytes), f"{use.unused_share:.0%}"]
            for use in block.uses
        ]  # fmt: skip
        assert len(block.uses) == 3
        for use in block.uses:
            if use.groups == 1:
                assert use.used_bytes + use.padding_bytes + use.rest_bytes == block.nbytes


def test_the_memory_adds_up_to_what_is_left() -> None:
    found = answer("estimated")
    memory, parts = table(solve_page(found), "The memory that is left for blocks"), found.memory.parts
    assert titles(memory) == ["memory of one GPU", "GiB", "error"]
    assert [row[0] for row in rows(memory)] == [*(part.name for part in parts), "for blocks"]
    assert [float(row[1]) for row in rows(memory)[:-1]] == [
        pytest.approx(part.gib, abs=0.006) if abs(part.gib) >= 0.01 else pytest.approx(part.gib, abs=1e-4)
        for part in parts
    ]
    errors = [row[2] for row in rows(memory)[:-1]]
    assert errors == [f"+-{part.error_gib:.1f}" if part.error_gib else "" for part in parts] and "" in errors
    ends = f"{gib(found.memory.low_bytes)} to {gib(found.memory.high_bytes)}"
    assert rows(memory)[-1] == ["for blocks", f"~{gib(found.memory.nbytes)}", ends]
    assert tones(memory) == [""] * len(parts) + ["strong"]


def test_memory_that_is_lacking_is_a_positive_number() -> None:
    found = answer("lacking")
    assert found.memory.high_bytes < 0
    last = rows(table(solve_page(found), "The memory that is left for blocks"))[-1]
    ends = f"{gib(-found.memory.high_bytes)} to {gib(-found.memory.low_bytes)}"
    assert last == ["lacking before the first block", f"~{gib(-found.memory.nbytes)}", ends]
    over = found._replace(memory=found.memory._replace(high_bytes=GIB))  # enough at the high end: no interval of a lack
    assert rows(table(solve_page(over), "The memory that is left for blocks"))[-1][2] == ""
    edge = found._replace(memory=found.memory._replace(high_bytes=0))
    assert rows(table(solve_page(edge), "The memory that is left for blocks"))[-1][2].startswith("0.0 GiB to ")
    none = found._replace(memory=found.memory._replace(nbytes=0, low_bytes=-GIB, high_bytes=GIB))
    assert rows(table(solve_page(none), "The memory that is left for blocks"))[-1] == ["for blocks", "~0.0 GiB", ""]


def test_remedies_say_whether_one_is_enough() -> None:
    pairs, single = answer("refused"), answer("lacking")
    assert pairs.remedies[0].beside is not None and single.remedies[0].beside is None
    for found, intro in (
        (pairs, "no single flag lets it start; two do:"),
        (single, "each of these alone lets it start:"),
    ):
        said = [text for text, _ in lines(section(solve_page(found), "Refused").blocks)]
        assert said == [intro, *(f"  {remedy.text}" for remedy in found.remedies)]
    (alone,) = lines(section(solve_page(pairs._replace(remedies=())), "Refused").blocks)
    assert alone == ("no flag lets it start, nor two, nor twice the GPUs up to 64", "")


@pytest.mark.parametrize("name", ["shared", "shared, measured"])
def test_prices_are_the_answers(name: str) -> None:
    found = answer(name, None, True)
    priced, estimated = solve_page(found).sections[-1], name == "shared"
    assert lines(priced.blocks) == ([("~ from the middle of the estimate", "muted")] if estimated else [])
    (shown,) = tables(priced.blocks)
    assert titles(shown) == ["knob", "from → to", "requests", "longest context", "fixed a request", "GPUs"]
    assert found.priced_contexts in str(priced.title)
    assert found.prices and len(shown.rows) == len(found.prices)
    assert {cell.tone for cell in cells(shown, "from → to")} == {"muted"}
    seen = set()
    for price, row, words in zip(found.prices, shown.rows, rows(shown), strict=True):
        assert words[:2] == [price.knob, f"{price.before} → {price.after}"]
        seen.add(price.failure is None)
        if price.failure is not None:
            assert words[2:] == [f"refused: {price.failure}", "", "", ""]
            assert cells(shown, "requests")[shown.rows.index(row)].tone == "bad"
            continue
        assert price.requests is not None and price.longest_context is not None
        for written, number in ((words[2], price.requests), (words[3], price.longest_context)):
            size = three_digits(abs(number)) if estimated else whole(abs(number))
            assert written == ("0" if not number else f"{'+' if number > 0 else '-'}{size}")
        assert row.cells[4:] == (price.fixed_bytes, price.gpus)
        assert all(isinstance(cell, Cell) and cell.estimated == estimated for cell in row.cells[2:4])
    assert seen == {True, False}


def test_a_start_that_fails_gives_no_context_and_no_prices() -> None:
    found = answer("refused", None, True)
    assert (found.longest_context, found.longest_context_span, found.prices) == (0, (0, 0), None)
    assert found.warnings == ()  # it fails at both ends of the memory
    plan = kv.plan({"tensor_parallel_size": 4}, engine="vllm-0.33.0", gpu="h200")
    assert answer_solve(plan, MemoryGiven()).prices is None
    nothing = answer_solve(plan.with_flags(max_model_len=-1), MemoryGiven(available_gib=0.02))
    assert nothing.printed.max_model_len == 0 and [row.longest for row in nothing.served] == [1]
    assert nothing.priced_contexts == "1"
