"""Splits and advice where memory holds a number of requests counted by hand."""

from dataclasses import replace
from typing import Any

from setups import EXACT, PAGE, PLAIN, SLOT, TEN, setup_of

from glm_kvplan.contexts import Contexts
from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.engines.sglang.sizing.advice import advise, served_within
from glm_kvplan.engines.sglang.sizing.served_requests import Demand, Served
from glm_kvplan.engines.sglang.sizing.serving_headroom import Room, room, with_room
from glm_kvplan.engines.sglang.sizing.split import (
    best_split,
    conversations_kept,
    default_split,
    requests_wanted,
    slots_needed,
    split_flags,
    tokens_needed,
    tokens_of,
    with_flags,
)
from glm_kvplan.units import GIB, MIB


def flags_of(requests: int, slots: int, tokens: int | None) -> dict[str, Any]:
    return {
        "max_running_requests": requests,
        "max_mamba_cache_size": slots,
        "max_total_tokens": tokens,
        "chunked_prefill_size": 16384,
        "mem_fraction_static": 0.75,
    }


# -- splits ------------------------------------------------------------------------------------------------------------


def test_what_a_split_is_made_of() -> None:
    wide = setup_of(replace(PLAIN, attn_dp_size=2, replicas=2), EXACT)
    assert [requests_wanted(wide, TEN._replace(concurrency=number)) for number in (8, 9, 12)] == [2, 3, 3]
    kept = TEN._replace(checkpoints=2)
    assert slots_needed(wide, kept, 3) == 21 and slots_needed(wide, kept, 3, 4) == 21 + 4 * 3
    assert split_flags(wide, 3, 33) == flags_of(6, 66, None) | {"chunked_prefill_size": 32768}


def test_a_split_that_is_met_exactly() -> None:
    split = best_split(setup_of(PLAIN, EXACT), TEN)
    assert split.flags == flags_of(10, 50, 20 * 64)
    assert split.served == Served(10, 10, "concurrency")
    assert split.solution is not None and split.solution.sizes == (1280, 50, 10)
    assert conversations_kept(split, TEN) == 0
    assert split.setup.deployment.max_total_tokens == 1280


def test_a_byte_less_serves_one_less() -> None:
    """Nine take 46 slots; four of the five slots that are left keep a conversation each, the fifth is all tokens."""
    split = best_split(setup_of(PLAIN, EXACT - 1), TEN)
    pages = (SLOT + 20 * PAGE - 1) // PAGE
    assert split.flags == flags_of(9, 49, pages * 64)
    assert split.served == Served(9, 9, "memory")
    assert conversations_kept(split, TEN) == 4
    checkpoints = TEN._replace(checkpoints=1)  # six slots a request, two a conversation: 48, 2 and the pool's own
    kept = best_split(setup_of(PLAIN, EXACT - 1), checkpoints)
    assert kept.flags["max_mamba_cache_size"] == 50 and kept.served.per_worker == 8
    assert conversations_kept(kept, checkpoints) == 1


def test_spare_slots_keep_no_more_than_the_tokens_hold() -> None:
    split = best_split(setup_of(PLAIN, EXACT), TEN)
    assert split.solution is not None
    twelve = split._replace(solution=split.solution._replace(state_slots=59, tokens=24 * 64))
    assert conversations_kept(twelve, TEN) == 2
    assert conversations_kept(twelve._replace(solution=None), TEN) == 0
    none = split._replace(solution=split.solution._replace(tokens=24 * 64))
    assert conversations_kept(none, TEN) == 0  # no slot is spare
    checkpoints = TEN._replace(checkpoints=1)  # three of 63 slots are spare, and a conversation takes two
    odd = split._replace(solution=split.solution._replace(state_slots=63, tokens=64_000))
    assert conversations_kept(odd, checkpoints) == 1 and type(conversations_kept(odd, checkpoints)) is int
    off = replace(split.setup, deployment=replace(split.setup.deployment, disable_radix_cache=True))
    assert conversations_kept(twelve._replace(setup=off), TEN) == 0


def test_drafts_reserve_tokens_ahead() -> None:
    drafts = replace(PLAIN, speculative_algorithm="EAGLE", speculative_num_draft_tokens=4, max_draft_tokens=4)
    assert tokens_of(setup_of(PLAIN, EXACT), TEN, 3) == 3 * 128
    assert tokens_of(setup_of(drafts, EXACT), Demand(Contexts((121,), (1,)), 10), 3) == 3 * 192  # 129 and up


def test_a_split_keeps_its_resolver() -> None:
    def resolver(**changes: Any) -> Deployment:
        return replace(PLAIN, **changes)

    split = best_split(setup_of(PLAIN, EXACT, resolver), TEN)
    assert split.flags == flags_of(10, 50, 1280)
    wider = split.setup.changed(tp_size=8)
    assert wider is not None and wider.deployment.tp_size == 8
    assert (wider.deployment.max_mamba_cache_size, wider.deployment.max_total_tokens) == (50, 1280)


def test_a_conversation_is_kept_to_the_last_page() -> None:
    split = best_split(setup_of(PLAIN, 52 * SLOT + 22 * PAGE), TEN)
    assert split.flags == flags_of(10, 51, 22 * 64) and conversations_kept(split, TEN) == 1
    less = best_split(setup_of(PLAIN, 52 * SLOT + 22 * PAGE - 1), TEN)
    assert less.flags["max_mamba_cache_size"] == 50 and conversations_kept(less, TEN) == 0


def test_a_resolver_that_moves_more_is_searched_with() -> None:
    """Here any resolved change makes the rows bf16: what serves ten with raw rows serves nine, and is solved so."""

    def resolver(**changes: Any) -> Deployment:
        return replace(PLAIN, **changes, kv_layout="bf16")

    split = best_split(setup_of(PLAIN, EXACT, resolver), TEN)
    pages = (SLOT + 20 * PAGE) // (64 * 11 * (1024 + 132))  # beside 49 slots and the pool's own
    assert split.flags == flags_of(9, 49, pages * 64) and split.served == Served(9, 9, "memory")
    assert split.setup.deployment.kv_layout == "bf16" and split.solution == split.setup.solution()


def test_without_a_prefix_cache_a_request_takes_one_slot() -> None:
    split = best_split(setup_of(replace(PLAIN, disable_radix_cache=True), 11 * SLOT + 20 * PAGE), TEN)
    assert split.flags == flags_of(10, 10, 1280) and split.served.requests == 10
    more = best_split(setup_of(replace(PLAIN, disable_radix_cache=True), 20 * SLOT), TEN)
    assert more.flags["max_mamba_cache_size"] == 10  # nothing is kept


def test_not_one_request() -> None:
    for nbytes in (6 * SLOT + 2 * PAGE - 1, 0, -41 * GIB):
        setup = setup_of(PLAIN, nbytes) if nbytes > 0 else setup_of(PLAIN, 0)
        split = best_split(setup, TEN)
        assert (split.flags, split.solution, split.served) == ({}, None, Served(0, 0, "memory"))
        assert split.setup is setup
        assert room(split, TEN) == Room(0, 0, 0) and with_room(split, TEN) is split
    assert best_split(setup_of(PLAIN, 6 * SLOT + 2 * PAGE), TEN).served.requests == 1


def test_the_engines_own_split() -> None:
    """Of 190 slots' bytes 90 go to states, one of them to the pool itself; the rest is tokens. User caps are lifted."""
    capped = replace(PLAIN, max_mamba_cache_size=3, max_total_tokens=64, mamba_full_memory_ratio=5.0)
    many = TEN._replace(concurrency=1000)
    assert default_split(setup_of(capped, 190.001 * SLOT), many) == Served(17, 17, "running requests")  # 89 // 5
    assert default_split(setup_of(capped, SLOT), many) == Served(0, 0, "memory")
    assert default_split(setup_of(capped, 190.001 * SLOT), TEN) == Served(10, 10, "concurrency")


def test_tokens_that_a_split_cannot_do_without() -> None:
    split = best_split(setup_of(PLAIN, EXACT), TEN)
    assert tokens_needed(split, TEN) == 1280
    one = split._replace(served=Served(1, 1, "tokens"))
    assert tokens_needed(one, TEN) == 128
    assert tokens_needed(one, Demand(Contexts((128,), (1,)), 1)) == 192  # a token must stay beside the context
    assert tokens_needed(one, Demand(Contexts((127,), (1,)), 1)) == 128


def test_flags_that_cost_a_request_are_not_taken() -> None:
    split = best_split(setup_of(PLAIN, EXACT), TEN)
    assert with_flags(split, {"max_total_tokens": 1279}, TEN) is None
    assert with_flags(split, {"max_mamba_cache_size": 500}, TEN) is None
    assert with_flags(split, {"tp_size": 8}, TEN) is None
    same = with_flags(split, {"chunked_prefill_size": 8192}, TEN)
    assert same is not None and same.flags == split.flags | {"chunked_prefill_size": 8192}
    assert same.setup.deployment.chunked_prefill_size == 8192
    assert same.solution is not None and same.solution.sizes == (1280, 50, 10)


# -- advice ------------------------------------------------------------------------------------------------------------


def test_advice_on_a_split_that_is_met_exactly() -> None:
    advice = advise(setup_of(PLAIN, EXACT), TEN)
    assert advice.holds and advice.shortage is None and advice.layouts == ()
    assert advice.command == (
        "--max-running-requests 10 --max-mamba-cache-size 50 --max-total-tokens 1280 "
        "--chunked-prefill-size 16384 --mem-fraction-static 0.75"
    )
    assert advice.conversations_kept == 0 and advice.served.requests == 10
    assert advice.default == default_split(setup_of(PLAIN, EXACT), TEN)
    assert advice.room.needed < advice.room.free
    setup = setup_of(PLAIN, EXACT)
    assert served_within(setup, TEN, advice, 0.0) == (10, 10)
    assert served_within(setup, TEN, advice, 2 * PAGE / GIB) == (9, 10)
    assert served_within(setup, TEN, advice, 4 * PAGE / GIB) == (8, 10)
    assert served_within(setup, TEN, advice, 500.0) == (0, 10)


def test_the_shortage_in_whole_mebibytes() -> None:
    """49 of 51 slots' bytes and all pages: nine requests, and two slots of 35.2 MiB are missing."""
    advice = advise(setup_of(PLAIN, EXACT - 2 * SLOT), TEN, keep_fraction=True, nearest=0)
    assert advice.shortage is not None and advice.served == Served(9, 9, "memory")
    assert advice.shortage == (1, 71 * MIB, "memory")  # 70.4
    assert not advice.holds and advice.flags["mem_fraction_static"] == 0.75
    byte = advise(setup_of(PLAIN, EXACT - 1), TEN, keep_fraction=True, nearest=0)
    assert byte.shortage == (1, MIB, "memory")
    raised = advise(setup_of(PLAIN, EXACT - 2 * SLOT), TEN, nearest=0)
    assert raised.holds and raised.flags["mem_fraction_static"] == 0.755
    nothing = advise(setup_of(PLAIN, 0), TEN, keep_fraction=True, nearest=0)
    assert (nothing.flags, nothing.command, nothing.solution) == ({}, "", None)
    assert nothing.shortage is not None and nothing.shortage.missing_requests == 10
    assert served_within(setup_of(PLAIN, 0), TEN, nothing, 1.0) == (0, 0)


def test_no_memory_would_do() -> None:
    """A million requests take five million slots: 168 TiB, and no more than 16 are tried."""
    many = advise(setup_of(PLAIN, EXACT), TEN._replace(concurrency=10**6), keep_fraction=True, nearest=0)
    assert many.shortage is not None and many.shortage.missing_bytes is None
    assert many.shortage.missing_requests == 10**6 - 10


def test_smaller_chunks_where_the_engine_then_takes_more() -> None:
    """Two workers: a chunk of 2,048 gives them 1.6 GiB more; a byte is missing, or ten GiB."""
    base = replace(PLAIN, attn_dp_size=2, linear_attn_tp_size=2, chunked_prefill_size=8192)
    raised = 0.76

    def resolver(**changes: Any) -> Deployment:
        chunk = changes.pop("chunked_prefill_size", 16384)
        fraction = changes.pop("mem_fraction_static", raised if chunk <= 4096 else 0.75)
        assert type(chunk) is int
        return replace(base, **changes, chunked_prefill_size=chunk // 2, mem_fraction_static=fraction)

    twenty = TEN._replace(concurrency=20)
    exact = 2 * 51 * SLOT + 20 * PAGE
    advice = advise(setup_of(base, exact - 1, resolver), twenty, keep_fraction=True, nearest=0)
    assert advice.holds
    assert (advice.flags["chunked_prefill_size"], advice.flags["mem_fraction_static"]) == (4096, 0.76)
    whole = advise(setup_of(base, exact, resolver), twenty, keep_fraction=True, nearest=0)
    assert (whole.flags["chunked_prefill_size"], whole.flags["mem_fraction_static"]) == (16384, 0.75)
    raised = 0.7501  # 16 MiB: no slot, and no request more
    same = advise(setup_of(base, exact - 2 * SLOT, resolver), twenty, keep_fraction=True, nearest=0)
    assert same.served.requests == 18 and same.flags["chunked_prefill_size"] == 16384
    hopeless = advise(setup_of(base, exact - 10 * GIB, resolver), twenty, keep_fraction=True, nearest=0)
    assert hopeless.flags == {} and hopeless.served.requests == 0


def test_another_state_dtype_is_written_out() -> None:
    half = 34 * (36_864 + 524_288)
    setup = setup_of(PLAIN, 51 * half + 20 * PAGE)
    asked = advise(setup, TEN, state_dtype="bfloat16", keep_fraction=True, nearest=0)
    assert asked.holds and asked.flags == flags_of(10, 50, 1280) | {"mamba_ssm_dtype": "bfloat16"}
    assert "mamba_ssm_dtype" not in advise(setup, TEN, state_dtype="float32", keep_fraction=True, nearest=0).flags
