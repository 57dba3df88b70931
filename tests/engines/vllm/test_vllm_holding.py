"""Expectations of a vLLM launch at their edges: what is found, what binds it, what would help, and what that breaks."""

from functools import cache
from typing import Any

import pytest

import glm_kvplan as kv
from glm_kvplan.contexts import parse_contexts
from glm_kvplan.engines.expectations import Expectations, Held, Judgement
from glm_kvplan.engines.mix_words import held_of
from glm_kvplan.engines.vllm.memory_before import total_gib
from glm_kvplan.engines.vllm.plan import Plan
from glm_kvplan.engines.vllm.served_requests import served
from glm_kvplan.engines.vllm.starting import Begun, begin
from glm_kvplan.errors import InputError
from glm_kvplan.memory.given import MemoryGiven

MEASURED = MemoryGiven(available_gib=45.0701)


@cache
def plan(*flags: tuple[str, object]) -> Plan:
    made: Plan = kv.plan({"tensor_parallel_size": 4, **dict(flags)}, engine="vllm-0.33.0", gpu="h200")
    return made


def held(expect: dict[str, Any], given: MemoryGiven = MEASURED, **flags: object) -> Held:
    return plan(*flags.items()).hold(given, Expectations(**expect))


def started(given: MemoryGiven = MEASURED, **flags: object) -> Begun:
    return begin(plan(*flags.items()), given)


def judged(expect: dict[str, Any], given: MemoryGiven = MEASURED, **flags: object) -> Judgement:
    """The last judgement."""
    return held(expect, given, **flags).judgements[-1]


SHORT = {"max_model_len": 131072}


def test_a_length_is_bound_by_the_server_or_by_the_blocks() -> None:
    found = judged({"min_context": 131072}, **SHORT)
    assert (found.holds, found.wanted, found.found, found.limit) == (True, 131072, 131072, "max_model_len")
    assert found.why == "the server admits 131,072 tokens a request" and found.changes == ()
    longer = judged({"min_context": 131073}, **SHORT)
    assert (longer.holds, longer.found) == (False, 131072) and longer.changes
    given = MemoryGiven(available_gib=12.5)
    tight = started(given, max_num_seqs=16, max_model_len=-1)
    blocks = tight.plan.blocks
    longest = blocks.longest_context(tight.start.count)
    few = plan(("max_num_seqs", 16)).hold(given, Expectations(min_context=1048576)).judgements[-1]
    assert (few.holds, few.limit) == (True, "max_model_len") and longest > 1048576
    held_by = held({"min_context": 900_000}, MemoryGiven(available_gib=9.5), max_num_seqs=16, max_model_len=-1)
    (_, short) = held_by.judgements
    assert short.limit == "blocks"  # fitted: what the server admits is what they hold
    assert isinstance(short.found, int) and short.found < 900_000
    assert short.why.endswith(f"{blocks.fixed:,} before the first token, {blocks.tokens_a_block:,} tokens each after")


@pytest.mark.parametrize("engines", [1, 2])
def test_requests_at_once_over_all_engines(engines: int) -> None:
    flags = {**SHORT, "data_parallel_size": engines}
    begun = started(**flags)
    blocks = begun.plan.blocks
    each = (begun.start.count - 1) // blocks.needed(131072)
    for asked in (each * engines, each * engines + 1):
        found = judged({"min_context": 131072, "min_concurrency": asked}, **flags)
        assert (found.holds, found.found, found.limit) == (asked <= each * engines, each * engines, "blocks")
        assert bool(found.changes) == (not found.holds)
    assert found.why == (
        f"{begun.start.count:,} blocks a GPU, one of them never given out; {blocks.needed(131072)} a request of "
        "131,072 tokens"
    )
    few = judged({"min_context": 8192, "min_concurrency": 9}, max_num_seqs=4, **flags)
    assert (few.found, few.limit) == (4 * engines, "max_num_seqs")
    assert few.why == "an engine runs 4 requests at once"
    long = judged({"min_context": 200_000, "min_concurrency": 1}, **flags)
    assert (long.found, long.limit, long.why) == (0, "max_model_len", "the server admits 131,072 tokens a request")


@pytest.mark.parametrize("engines", [1, 2])
def test_tokens_and_requests_that_the_blocks_have(engines: int) -> None:
    begun = started(data_parallel_size=engines)
    blocks, count = begun.plan.blocks, begun.start.count
    tokens = (count - 1) * blocks.tokens_a_block * engines
    for wanted in (tokens, tokens + 1):
        found = judged({"min_total_tokens": wanted}, data_parallel_size=engines)
        assert (found.holds, found.found, found.limit) == (wanted == tokens, tokens, "blocks")
    assert found.why.endswith(f"; {blocks.tokens_a_block:,} tokens each, if nothing but tokens lay in them")
    running = (count - 1) // blocks.needed(1) * engines
    granted = judged({"max_running_requests": running}, data_parallel_size=engines)
    assert (granted.holds, granted.found, granted.limit) == (True, running, "blocks")
    assert granted.why.endswith(f"{blocks.needed(1)} a request of 1 tokens")
    capped = judged({"max_running_requests": 9 * engines}, data_parallel_size=engines, max_num_seqs=8)
    assert (capped.holds, capped.found, capped.limit) == (False, 8 * engines, "max_num_seqs")


def test_headroom_is_what_is_left_of_the_card() -> None:
    left = total_gib(plan().gpu) * (1 - 0.92)
    for wanted in (round(left, 6) - 1e-5, left + 1e-6):
        found = judged({"headroom": wanted})
        assert (found.holds, found.found, found.limit) == (wanted < left, round(left, 2), "gpu_memory_utilization")
    assert found.why == f"gpu_memory_utilization 0.92 leaves {left:.2f} GiB of a H200"
    assert judged({"headroom": left}).holds
    fits = judged({"headroom": "fits"}, kv_cache_memory_bytes=60 << 30)
    assert found.name == fits.name == "headroom"
    assert (fits.holds, fits.found, fits.limit) == (True, "fits", "memory")
    with pytest.raises(InputError, match="leave one of them out"):
        judged({"headroom": 1.0}, kv_cache_memory_bytes=60 << 30)


@pytest.mark.parametrize("given", [{"host_gib": 1.0}, {"pod_gib": 1.0}, {"expect": Expectations(host_memory="fits")}])
def test_host_memory_is_no_matter_of_vllm(given: dict[str, Any]) -> None:
    expect = given.pop("expect", Expectations())
    with pytest.raises(InputError, match="leave host_memory, host_gib and pod_gib out"):
        plan().hold(MEASURED, expect, **given)
    assert plan().hold(MEASURED, Expectations()).judgements == (Judgement("boots", True, "starts", "starts", "", ""),)


def test_a_start_that_fails_is_found_nothing_of() -> None:
    given = MemoryGiven(available_gib=12.5)
    found = held({"min_context": 1000, "min_concurrency": 2, "headroom": 1.0}, given)
    failure = started(given).failure
    assert failure is not None
    boots, *others = found.judgements
    assert (boots.holds, boots.found, boots.limit, boots.why) == (False, "refused", failure.kind, failure.reason)
    assert [one.name for one in others] == ["min_context", "min_concurrency", "headroom"]
    assert {(one.holds, one.found, one.why) for one in others} == {(False, "nothing", "the engine does not start")}
    assert found.remarks == ()
    assert (boots.name, boots.wanted) == ("boots", "starts") and boots.changes
    for change in boots.changes:
        assert begin(plan(*change.flags.items()), MemoryGiven() if change.estimated else given, plan()).failure is None


def test_what_helps_one_and_breaks_another_comes_last() -> None:
    """Fewer states leave more requests; more GPUs too; a lower limit would break what holds."""
    expect = {"min_context": 131072, "min_concurrency": 40, "max_running_requests": 60}
    (found,) = (one for one in held(expect, **SHORT, max_num_seqs=64).judgements if not one.holds)
    assert found.name == "min_concurrency"
    assert len(found.changes) == 4  # of more that would
    broken = [len(change.then_short) for change in found.changes]
    assert broken == sorted(broken)
    for change in found.changes:
        made = plan(*{**SHORT, "max_num_seqs": 64, **change.flags}.items())
        then = begin(
            made, MemoryGiven() if change.estimated else MEASURED, plan(*{**SHORT, "max_num_seqs": 64}.items())
        )
        assert served(then.start, parse_contexts("131072")).requests >= 40
        gpus = then.plan.gpus
        assert change.text.endswith(" (its memory estimated)") == change.estimated == (gpus > 4)
        assert (f" on {gpus} GPUs, not 4" in change.text) == (gpus > 4)


def test_a_change_names_what_it_breaks_and_stands_last() -> None:
    """A bfloat16 state leaves more requests and blocks of a few tokens fewer: all tokens there are no longer held."""
    tokens = held({"min_total_tokens": 1}).judgements[-1].found
    changes = {
        asked: judged({"min_total_tokens": tokens, "max_running_requests": asked}).changes for asked in (300, 400)
    }
    assert [change.then_short for change in changes[400]] == [(), (), (), ("min_total_tokens",)]
    assert changes[400][-1].text == "--mamba-ssm-cache-dtype bfloat16"
    assert [change.text.split(" on ")[0] for change in changes[300]] == [
        "--kda-prefill-backend triton",
        "--no-enable-prefix-caching",
        "--tensor-parallel-size 8",
        "--data-parallel-size 2",
    ]
    both = judged({"min_total_tokens": 10**8, "max_running_requests": 400}).changes
    assert changes[400][:3] == both[:1] + both[2:] and both[1].then_short == ()  # it did not hold before


def test_an_engine_runs_its_share_of_the_requests() -> None:
    found = judged({"max_running_requests": 19}, max_num_seqs=8, data_parallel_size=2)
    assert found.changes[0].text == "--max-num-seqs 10"


def test_requests_that_flags_ask_for_and_blocks_do_not_hold() -> None:
    begun = started()
    most = (begun.start.count - 1) // begun.plan.blocks.needed(1)
    for asked in (most, most + 1):
        remarks = held({}, max_num_seqs=asked).remarks
        assert [remark.name for remark in remarks] == ([] if asked == most else ["requests_capped"])
    (remark,) = remarks
    assert remark.place == ("flags", "max_num_seqs")
    assert remark.why == f"{asked:,} requests are asked for and the blocks hold {most:,}, however short they are"
    assert held({}).remarks == ()


def test_what_an_estimate_moves_is_said_to_be_estimated() -> None:
    begun = started(MemoryGiven(), **SHORT)
    low, middle, high = (served(one, parse_contexts("128k")).requests for one in (begun.low, begun.start, begun.high))
    assert low < middle < high
    found = held({"min_context": 131072, "min_concurrency": middle}, MemoryGiven(), **SHORT)
    assert [one.estimated for one in found.judgements] == [False, False, True]
    (remark,) = found.remarks
    less = (begun.memory.nbytes - begun.memory.low_bytes) / 2**30
    assert remark.why.startswith(f"min_concurrency would fall short with {less:.1f} GiB less: ")
    assert (remark.name, remark.place) == ("estimated_memory", ("memory",))
    assert held({"min_context": 131072, "min_concurrency": low}, MemoryGiven(), **SHORT).remarks == ()
    already = held({"min_context": 131072, "min_concurrency": high + 1}, MemoryGiven(), **SHORT)
    assert already.remarks == ()  # it falls short in the middle, too
    exact = held({"min_context": 131072, "min_concurrency": middle}, MEASURED, **SHORT)
    assert not any(one.estimated for one in exact.judgements) and exact.remarks == ()


def test_notes_say_how_the_memory_was_found_and_what_a_mix_has_by_its_mean() -> None:
    begun = started(MemoryGiven())
    assert begun.weights is not None
    mix = parse_contexts("0.8:8k,0.2:128k")
    mean = served(begun.start, mix.as_mean).requests
    found = held({"contexts": mix, "min_concurrency": 4}, MemoryGiven())
    assert found.notes == (*begun.weights.notes, held_of(mix, mean))
    assert held({"contexts": mix}, MemoryGiven(available_gib=4.0)).notes == ()
    assert held({"min_concurrency": 4}).notes == ()
