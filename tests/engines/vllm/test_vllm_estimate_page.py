"""The page of `kvplan estimate` of a vLLM launch: rows are the answer's, the verdict turns where the memory ends."""

from functools import cache

import pytest
from vllm_pages import laid_out, lines, rows, section, spare, table, titles, tones

import glm_kvplan as kv
from glm_kvplan.contexts import parse_contexts
from glm_kvplan.engines.mix_words import promised
from glm_kvplan.engines.vllm.answers.estimate_answer import EstimateAnswer, answer_estimate
from glm_kvplan.engines.vllm.answers.estimate_page import estimate_page
from glm_kvplan.engines.vllm.memory_before import Available
from glm_kvplan.engines.vllm.starting import begin, memory_of
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.show.format import decimal, gib, whole
from glm_kvplan.show.page import Page
from glm_kvplan.units import GIB
from glm_kvplan.workload import UNKNOWN_HOST, Demand, Workload

TP4: dict[str, object] = {"tensor_parallel_size": 4}
FLAGS: dict[str, dict[str, object]] = {
    "memory": TP4,
    "blocks": {**TP4, "num_gpu_blocks_override": 4000, "data_parallel_size": 2},
    "bytes": {**TP4, "kv_cache_memory_bytes": 64 << 30},
    "no card": TP4,
    "narrow": {"tensor_parallel_size": 1},
}


@cache
def answer(name: str, context: int = 131072, concurrency: int = 12) -> EstimateAnswer:
    plan = kv.plan(FLAGS[name], engine="vllm-0.33.0", gpu=None if name == "no card" else "h200")
    return answer_estimate(plan, Workload(context, concurrency), UNKNOWN_HOST)


@cache
def mixed() -> EstimateAnswer:
    plan = kv.plan(TP4, engine="vllm-0.33.0", gpu="h200")
    return answer_estimate(plan, Demand(parse_contexts("0.8:8k,0.2:128k"), 20), UNKNOWN_HOST)


def judged(found: EstimateAnswer) -> tuple[str, str] | None:
    verdict = estimate_page(found).verdict
    return None if verdict is None else (str(verdict.text), verdict.tone)


@pytest.mark.parametrize("name", ["memory", "blocks", "bytes"])
def test_what_the_blocks_hold(name: str) -> None:
    found = answer(name)
    needed = table(estimate_page(found), "The blocks one GPU needs")
    parts = {"tokens": found.blocks.tokens, "KDA states": found.blocks.states, "tails": found.blocks.tails,
             "never given out": 1, "needed": found.blocks.total}  # fmt: skip
    if name != "memory":
        parts["given by flags"] = 4000 if name == "blocks" else (64 << 30) // found.block_bytes
    assert found.given_blocks == parts.get("given by flags")
    assert titles(needed) == ["blocks of one GPU", "blocks", "bytes"]
    assert rows(needed) == [
        [name, whole(number), decimal(number * found.block_bytes)] for name, number in parts.items()
    ]
    assert tones(needed) == ["", "", "", "", "strong", ""][: len(parts)]
    assert sum([*parts.values()][:4]) == found.blocks.total


@pytest.mark.parametrize("name", ["memory", "blocks"])
def test_what_fills_them_adds_up(name: str) -> None:
    found = answer(name)
    gpus = found.head.gpus
    filled = table(estimate_page(found), "What fills them")
    assert titles(filled) == ["what fills them", "one unit costs", "units", "one GPU", f"{gpus} GPUs", "share"]
    assert [column.kind for column in filled.columns][-1] == "share"
    ledgers = [
        [each.title, f"{each.bytes_per_unit:,} B/{each.unit}", whole(each.units), decimal(each.nbytes),
         decimal(each.bytes_per_unit * each.units * gpus), f"{each.nbytes / found.nbytes:.0%}"]
        for each in found.ledgers
    ]  # fmt: skip
    rests = [
        [rest.name, "", "", decimal(rest.nbytes), decimal(rest.nbytes * gpus), f"{rest.nbytes / found.nbytes:.0%}"]
        for rest in found.rests
    ]
    whole_row = ["all blocks", "", "", decimal(found.nbytes), decimal(found.nbytes * gpus), ""]
    assert rows(filled) == [*ledgers, *rests, whole_row]
    assert tones(filled) == [""] * len(ledgers) + ["muted"] * len(rests) + ["strong"]
    shares = [row.cells[-1] for row in filled.rows[:-1]]
    assert sum(share for share in shares if isinstance(share, float)) == pytest.approx(1)


def test_one_request_is_said_in_blocks_bytes_and_tokens() -> None:
    for found, who in ((answer("memory"), "one request"), (mixed(), "the longest")):
        one, fixed = found.request, found.fixed
        said = [text for text, _ in lines(section(estimate_page(found), "One request").blocks)]
        share = f"{1 - one.used_bytes / one.nbytes:.0%}"
        assert said == [
            f"{who} takes {one.blocks} blocks a GPU: {decimal(one.nbytes)}, of which it never writes {share}",
            f"before its first token it holds {fixed.blocks} blocks: {decimal(fixed.nbytes)}, what "
            f"{fixed.tokens:,} tokens would take",
        ]


def test_a_screen_leaves_the_blocks_out_first_and_never_what_fills_them() -> None:
    page = estimate_page(answer("memory"))
    assert laid_out(page.sections) == [
        ("The blocks one GPU needs", True, 1),
        ("What fills them", True, 0),
        ("One request", True, 2),
    ]
    assert spare(table(page, "What fills them")) == []


def test_explained_prices_are_their_formulas() -> None:
    found = answer("memory")
    page = estimate_page(found, explain=True)
    explained = page.sections[3:]
    assert len(explained) == len(found.ledgers)
    for part, ledger in zip(explained, found.ledgers, strict=True):
        price, units, total = ledger.bytes_per_unit, ledger.units, ledger.nbytes
        assert lines(part.blocks) == [
            (f"{ledger.title} (per {ledger.unit}; exact)", "strong"),
            (f"  {ledger.formula}", ""),
            (f"  = {ledger.formula_in_numbers}", ""),
            (f"  = {price:,} B; x {units:,} = {total:,} B", ""),
            (f"  source: {ledger.source}", "muted"),
        ]


def memory(found: EstimateAnswer) -> Available:
    assert found.memory is not None
    return found.memory


def test_the_verdict_turns_where_the_memory_ends() -> None:
    """Sure up to the low end of the estimate, careful to its high end, no beyond."""
    found = answer("memory")
    low, size = memory(found).low_bytes, gib(memory(found).nbytes)
    for nbytes, tone in ((low, "good"), (low + 1, "careful")):
        made = found._replace(nbytes=nbytes)
        assert judged(made) == (
            f"Yes: blocks of 12 requests fit beside the weights: {nbytes / GIB:.1f} of ~{size}", tone
        )  # fmt: skip
    block = found.block_bytes
    most = memory(found).high_bytes // block
    plan = kv.plan(TP4, engine="vllm-0.33.0", gpu="h200")
    fits = {}
    for each in (most - 1, most):  # and the block that is never given out
        needed = each - plan.blocks.fixed
        made = answer_estimate(plan, Workload(needed * plan.blocks.size, 1), UNKNOWN_HOST)
        fits[made.blocks.total - most] = (made.fits, judged(made))
    assert fits[0][0] and fits[0][1] is not None and fits[0][1][1] == "careful"
    assert fits[1] == (False, ("No: blocks of 1 request do not fit", "bad"))


def test_flags_that_fix_the_blocks_decide_alone() -> None:
    good = "Yes: blocks of 12 requests are no more than the flags give"
    assert judged(answer("blocks")) == (good, "good") == judged(answer("bytes"))
    assert answer("blocks").memory is None is answer("bytes").memory
    short = answer("blocks", 131072, 1200)
    assert judged(short) == ("No: blocks of 1,200 requests do not fit", "bad")
    said = f"does not fit: the workload needs {short.blocks.total:,} blocks on a GPU; the flags give 4,000"
    assert str(short.warnings[0]) == said


def test_without_a_card_there_is_a_sum_and_no_verdict() -> None:
    found = answer("no card")
    page = estimate_page(found)
    assert page.verdict is None and found.memory is None and found.fits
    said = lines(page.lead)
    total = gib(found.nbytes * 4)
    assert said[0] == (str(found.head.layout), "muted")
    assert said[1] == (
        f"blocks of {gib(found.nbytes)} a GPU, {total} on 4 GPUs; --gpu NAME tells if they fit",
        "strong",
    )
    assert said[2:] == [
        (f"12 x 131,072 tokens; an engine serves 12 of them, in blocks of {found.block_tokens:,} tokens", "")
    ]
    assert lines(estimate_page(answer("memory")).lead) == said[:1]


def remarks(page: Page) -> list[str]:
    assert page.verdict is not None
    return [str(remark) for remark in page.verdict.remarks]


def test_a_mix_is_promised_and_a_length_is_not() -> None:
    found, engines = mixed(), answer("blocks")
    assert found.mix is not None
    mean = found.mix.mean_blocks
    promise = promised(found.mix.confidence, (f"{mean:,} blocks", decimal(mean * found.block_bytes)))
    held = f"20 x (0.8:8,192,0.2:131,072); an engine serves 20 of them, in blocks of {found.block_tokens:,} tokens"
    assert remarks(estimate_page(found))[1] == str(promise)
    assert remarks(estimate_page(found))[0].split(";")[1] == held.split(";")[1]
    assert found.mix.contexts in remarks(estimate_page(found))[0]
    assert found.mix.mean_bytes_all_gpus == 4 * found.mix.mean_bytes == 4 * mean * found.block_bytes
    assert (
        len(remarks(estimate_page(engines))) == 1 and "an engine serves 6 of them" in remarks(estimate_page(engines))[0]
    )
    alone = answer_estimate(
        kv.plan(TP4, engine="vllm-0.33.0", gpu="h200"), Demand(parse_contexts("128k"), 12), UNKNOWN_HOST
    )
    assert alone.mix is None and alone == answer("memory")


def test_weights_that_leave_nothing_are_said_once() -> None:
    """At the high end, too, less than nothing: the start's own words. Above nothing at the high end: the interval."""
    found = answer("narrow", 1024, 1)
    assert memory(found).high_bytes < 0 and found.head.gpus == 1
    begun = begin(kv.plan(FLAGS["narrow"], engine="vllm-0.33.0", gpu="h200"), MemoryGiven())
    assert begun.failure is not None
    assert [str(warning) for warning in found.warnings] == [f"does not fit: {begun.failure.reason}"]
    plan = kv.plan({**TP4, "gpu_memory_utilization": 0.59}, engine="vllm-0.33.0", gpu="h200")
    left, _ = memory_of(plan, MemoryGiven())
    assert left.low_bytes < 0 < left.high_bytes
    (said,) = answer_estimate(plan, Workload(1048576, 8), UNKNOWN_HOST).warnings
    assert f"vLLM has 0.0 GiB to {gib(left.high_bytes)} beside the weights" in str(said)


def test_more_requests_than_an_engine_runs_do_not_fit() -> None:
    plan = kv.plan({**TP4, "max_num_seqs": 8, "data_parallel_size": 2}, engine="vllm-0.33.0", gpu="h200")
    assert not answer_estimate(plan, Workload(1024, 16), UNKNOWN_HOST).warnings
    (said,) = answer_estimate(plan, Workload(1024, 17), UNKNOWN_HOST).warnings
    assert str(said) == "does not fit: 9 requests on an engine, and --max-num-seqs lets 8 run at once"
