"""Splits and advice where memory holds a number of requests counted by hand."""

from typing import Any

import pytest
from hand_counted import EXACT, PAGE, PLAIN, SLOT, TEN, TWO_WORKERS, server_of

from glm_kvplan.contexts import Contexts
from glm_kvplan.engines.planner import plan
from glm_kvplan.engines.sglang.moves import typed
from glm_kvplan.engines.sglang.sizing.advice import advise, served_within
from glm_kvplan.engines.sglang.sizing.served_requests import Served
from glm_kvplan.engines.sglang.sizing.server import Server
from glm_kvplan.engines.sglang.sizing.serving_headroom import ServingHeadroom, headroom_of, with_headroom
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
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.units import GIB, MIB
from glm_kvplan.workload import Demand


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
    wide = server_of(PLAIN | TWO_WORKERS, EXACT)
    assert [requests_wanted(wide, TEN._replace(concurrency=number)) for number in (8, 9, 12)] == [4, 5, 6]
    copies = server_of(PLAIN | {"dp_size": 4}, EXACT)
    assert [requests_wanted(copies, TEN._replace(concurrency=number)) for number in (8, 9, 12)] == [2, 3, 3]
    kept = TEN._replace(prefix_states=2)
    assert slots_needed(wide, kept, 3) == 21 and slots_needed(wide, kept, 3, 4) == 21 + 4 * 3
    assert split_flags(wide, 3, 33) == flags_of(6, 66, None) | {"chunked_prefill_size": 32768}


def test_a_split_that_is_met_exactly() -> None:
    split = best_split(server_of(PLAIN, EXACT), TEN)
    assert split.flags == flags_of(10, 50, 20 * 64)
    assert split.served == Served(10, 10, "concurrency")
    assert split.solution is not None and split.solution.sizes == (1280, 50, 10)
    assert conversations_kept(split, TEN) == 0
    assert split.server.deployment.max_total_tokens == 1280


def test_a_byte_less_serves_one_less() -> None:
    """Nine take 46 slots; four of the five slots that are left keep a conversation each, the fifth is all tokens."""
    split = best_split(server_of(PLAIN, EXACT - 1), TEN)
    pages = (SLOT + 20 * PAGE - 1) // PAGE
    assert split.flags == flags_of(9, 49, pages * 64)
    assert split.served == Served(9, 9, "memory")
    assert conversations_kept(split, TEN) == 4
    keeping = TEN._replace(prefix_states=1)  # six slots a request, two a conversation: 48, 2 and the pool's own
    kept = best_split(server_of(PLAIN, EXACT - 1), keeping)
    assert kept.flags["max_mamba_cache_size"] == 50 and kept.served.per_worker == 8
    assert conversations_kept(kept, keeping) == 1


def test_spare_slots_keep_no_more_than_the_tokens_hold() -> None:
    split = best_split(server_of(PLAIN, EXACT), TEN)
    assert split.solution is not None
    twelve = split._replace(solution=split.solution._replace(state_slots=59, tokens=24 * 64))
    assert conversations_kept(twelve, TEN) == 2
    assert conversations_kept(twelve._replace(solution=None), TEN) == 0
    none = split._replace(solution=split.solution._replace(tokens=24 * 64))
    assert conversations_kept(none, TEN) == 0  # no slot is spare
    keeping = TEN._replace(prefix_states=1)  # three of 63 slots are spare, and a conversation takes two
    odd = split._replace(solution=split.solution._replace(state_slots=63, tokens=64_000))
    assert conversations_kept(odd, keeping) == 1 and type(conversations_kept(odd, keeping)) is int
    off = split.server.with_flags(disable_radix_cache=True)
    assert conversations_kept(twelve._replace(server=off), TEN) == 0


def test_drafts_reserve_tokens_ahead() -> None:
    drafts = PLAIN | {"speculative_algorithm": "EAGLE"}  # four draft tokens
    assert tokens_of(server_of(PLAIN, EXACT), TEN, 3) == 3 * 128
    assert tokens_of(server_of(drafts, EXACT), Demand(Contexts((121,), (1,)), 10), 3) == 3 * 192  # 129 and up


def test_a_split_can_be_changed_further() -> None:
    split = best_split(server_of(PLAIN, EXACT), TEN)
    assert split.flags == flags_of(10, 50, 1280)
    wider = split.server.with_flags(tp_size=8)
    assert wider.deployment.tp_size == 8
    assert (wider.deployment.max_mamba_cache_size, wider.deployment.max_total_tokens) == (50, 1280)


def test_a_conversation_is_kept_to_the_last_page() -> None:
    split = best_split(server_of(PLAIN, 52 * SLOT + 22 * PAGE), TEN)
    assert split.flags == flags_of(10, 51, 22 * 64) and conversations_kept(split, TEN) == 1
    less = best_split(server_of(PLAIN, 52 * SLOT + 22 * PAGE - 1), TEN)
    assert less.flags["max_mamba_cache_size"] == 50 and conversations_kept(less, TEN) == 0


def test_a_split_is_what_its_flags_resolve_to() -> None:
    """aiter takes 15 % off the memory fraction that is typed: the fraction written out is the one to type."""
    made = plan({"tp_size": 8, "attention_backend": "aiter"}, gpu="mi300x", environment={"SGLANG_USE_AITER": "1"})
    given = MemoryGiven(188.0, 100.0)
    now = made.deployment.mem_fraction_static
    split = best_split(Server(made, given), TEN)
    typed = split.flags["mem_fraction_static"]
    assert typed == pytest.approx(now / 0.85)
    again = Server(made.with_flags(**split.flags), given)
    assert again.deployment.mem_fraction_static == pytest.approx(now)
    assert again.solution == split.solution and split.served.requests == 10


def test_without_a_prefix_cache_a_request_takes_one_slot() -> None:
    split = best_split(server_of(PLAIN | {"disable_radix_cache": True}, 11 * SLOT + 20 * PAGE), TEN)
    assert split.flags == flags_of(10, 10, 1280) and split.served.requests == 10
    more = best_split(server_of(PLAIN | {"disable_radix_cache": True}, 20 * SLOT), TEN)
    assert more.flags["max_mamba_cache_size"] == 10  # nothing is kept


def test_not_one_request() -> None:
    for nbytes in (6 * SLOT + 2 * PAGE - 1, 0, -40 * GIB):
        server = server_of(PLAIN, nbytes)
        split = best_split(server, TEN)
        assert (split.flags, split.solution, split.served) == ({}, None, Served(0, 0, "memory"))
        assert split.server is server
        assert headroom_of(split, TEN) == ServingHeadroom(0, 0, 0) and with_headroom(split, TEN) is split
    assert best_split(server_of(PLAIN, 6 * SLOT + 2 * PAGE), TEN).served.requests == 1


def test_the_engines_own_split() -> None:
    """Of 190 slots' bytes 90 go to states, one of them to the pool itself; the rest is tokens. User caps are lifted."""
    capped = PLAIN | {"max_mamba_cache_size": 3, "max_total_tokens": 64, "mamba_full_memory_ratio": 5.0}
    many = TEN._replace(concurrency=1000)
    assert default_split(server_of(capped, 190.001 * SLOT), many) == Served(17, 17, "running requests")  # 89 // 5
    assert default_split(server_of(capped, SLOT), many) == Served(0, 0, "memory")
    assert default_split(server_of(capped, 190.001 * SLOT), TEN) == Served(10, 10, "concurrency")


def test_tokens_that_a_split_cannot_do_without() -> None:
    split = best_split(server_of(PLAIN, EXACT), TEN)
    assert tokens_needed(split, TEN) == 1280
    one = split._replace(served=Served(1, 1, "tokens"))
    assert tokens_needed(one, TEN) == 128
    assert tokens_needed(one, Demand(Contexts((128,), (1,)), 1)) == 192  # a token must stay beside the context
    assert tokens_needed(one, Demand(Contexts((127,), (1,)), 1)) == 128


def test_flags_that_cost_a_request_are_not_taken() -> None:
    split = best_split(server_of(PLAIN, EXACT), TEN)
    assert with_flags(split, {"max_total_tokens": 1279}, TEN) is None
    assert with_flags(split, {"max_mamba_cache_size": 500}, TEN) is None
    assert with_flags(split, {"tp_size": 5}, TEN) is None
    same = with_flags(split, {"chunked_prefill_size": 8192}, TEN)
    assert same is not None and same.flags == split.flags | {"chunked_prefill_size": 8192}
    assert same.server.deployment.chunked_prefill_size == 8192
    assert same.solution is not None and same.solution.sizes == (1280, 50, 10)


# -- advice ------------------------------------------------------------------------------------------------------------


def test_advice_on_a_split_that_is_met_exactly() -> None:
    advice = advise(server_of(PLAIN, EXACT), TEN)
    assert advice.holds and advice.shortage is None and advice.layouts == ()
    assert typed(advice.flags) == (
        "--max-running-requests 10 --max-mamba-cache-size 50 --max-total-tokens 1280 "
        "--chunked-prefill-size 16384 --mem-fraction-static 0.75"
    )
    assert advice.conversations_kept == 0 and advice.served.requests == 10
    assert advice.default == default_split(server_of(PLAIN, EXACT), TEN)
    assert advice.headroom.needed < advice.headroom.usable
    server = server_of(PLAIN, EXACT)
    assert served_within(server, TEN, advice, 0.0) == (10, 10)
    assert served_within(server, TEN, advice, 2 * PAGE / GIB) == (9, 10)
    assert served_within(server, TEN, advice, 4 * PAGE / GIB) == (8, 10)
    assert served_within(server, TEN, advice, 500.0) == (0, 10)


def test_the_shortage_in_whole_mebibytes() -> None:
    """49 of 51 slots' bytes and all pages: nine requests, and two slots of 35.2 MiB are missing."""
    advice = advise(server_of(PLAIN, EXACT - 2 * SLOT), TEN, keep_fraction=True, nearest=0)
    assert advice.shortage is not None and advice.served == Served(9, 9, "memory")
    assert advice.shortage == (1, 71 * MIB, "memory")  # 70.4
    assert not advice.holds and advice.flags["mem_fraction_static"] == 0.75
    byte = advise(server_of(PLAIN, EXACT - 1), TEN, keep_fraction=True, nearest=0)
    assert byte.shortage == (1, MIB, "memory")
    raised = advise(server_of(PLAIN, EXACT - 2 * SLOT), TEN, nearest=0)
    assert raised.holds and raised.flags["mem_fraction_static"] == 0.755
    nothing = advise(server_of(PLAIN, 0), TEN, keep_fraction=True, nearest=0)
    assert (nothing.flags, nothing.solution) == ({}, None) and not typed(nothing.flags)
    assert nothing.shortage is not None and nothing.shortage.missing_requests == 10
    assert served_within(server_of(PLAIN, 0), TEN, nothing, 1.0) == (0, 0)


def test_no_memory_would_do() -> None:
    """A million requests take five million slots: 168 TiB, and no more than 16 are tried."""
    many = advise(server_of(PLAIN, EXACT), TEN._replace(concurrency=10**6), keep_fraction=True, nearest=0)
    assert many.shortage is not None and many.shortage.missing_bytes is None
    assert many.shortage.missing_requests == 10**6 - 10


def test_smaller_chunks_where_the_engine_then_takes_more() -> None:
    """Two workers: half a chunk of 32,768 leaves the pools 0.783 instead of 0.612 of memory, a smaller one more.

    What the engine keeps back is counted by hand in test_remedies. A request takes five slots of 2 * SLOT a worker.
    """
    flags = {name: value for name, value in PLAIN.items() if name != "mem_fraction_static"} | TWO_WORKERS
    server = Server(plan(flags), MemoryGiven(138.0, 137.0))
    by_chunk = {}
    for chunk, share in ((32768, 0.612), (16384, 0.783), (8192, 0.868)):
        budget = (137.0 - 138.0 * (1 - share)) * GIB
        by_chunk[chunk] = 2 * int((budget - 2 * SLOT) / (10 * SLOT + 2 * PAGE))
    for chunk, most in by_chunk.items():
        advice = advise(server, TEN._replace(concurrency=most), keep_fraction=True, nearest=0)
        assert advice.holds and advice.flags["chunked_prefill_size"] == chunk
    beyond = advise(server, TEN._replace(concurrency=10**6), keep_fraction=True, nearest=0)
    assert not beyond.holds and beyond.flags["chunked_prefill_size"] == 2048  # the smallest leaves the pools most
    fixed = advise(server.with_flags(mem_fraction_static=0.612), TEN._replace(concurrency=by_chunk[16384]), nearest=0,
                   keep_fraction=True)  # fmt: skip
    assert not fixed.holds and fixed.flags["chunked_prefill_size"] == 32768  # nothing rises where it was typed


def test_chunks_without_a_bound_stay_so_where_they_do() -> None:
    """Chunks of -1 on eight workers: never worse than the default split."""
    flags = {"tp_size": 8, "dp_size": 8, "enable_dp_attention": True, "chunked_prefill_size": -1}
    server = Server(plan(flags, gpu="b200"), MemoryGiven())
    demand = Demand(Contexts((8192,), (1,)), 64)
    advice = advise(server, demand)
    assert default_split(server, demand).requests == 64 == advice.served.requests
    assert advice.flags["chunked_prefill_size"] == -1 and advice.holds


def test_another_state_dtype_is_written_out() -> None:
    half = 34 * (36_864 + 524_288)
    server = server_of(PLAIN, 51 * half + 20 * PAGE)
    asked = advise(server, TEN, state_dtype="bfloat16", keep_fraction=True, nearest=0)
    assert asked.holds and asked.flags == flags_of(10, 50, 1280) | {"mamba_ssm_dtype": "bfloat16"}
    assert "mamba_ssm_dtype" not in advise(server, TEN, state_dtype="float32", keep_fraction=True, nearest=0).flags
