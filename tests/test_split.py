"""Splits, room and advice where memory holds a number of requests counted by hand."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from glm_kvplan.deployment.deployment import Deployment
from glm_kvplan.engine.profile import load_profile
from glm_kvplan.errors import RefusedError
from glm_kvplan.model.loader import bundled_geometry
from glm_kvplan.pools.specs import device_bytes, tensor_specs
from glm_kvplan.sizing.advice import advise, served_within
from glm_kvplan.sizing.free import free_bytes
from glm_kvplan.sizing.room import Room, raised_fraction, room, with_room
from glm_kvplan.sizing.setup import Memory, Setup
from glm_kvplan.sizing.split import (
    best_split,
    conversations_kept,
    default_split,
    requests_wanted,
    slots_needed,
    split_flags,
    tokens_needed,
    with_flags,
)
from glm_kvplan.sizing.workload import Contexts, Demand, Served
from glm_kvplan.units import GIB, MIB

GEOMETRY = bundled_geometry()
SLOT = 34 * (36_864 + 1_048_576)  # one state slot on each of four ranks
PAGE = 64 * 11 * (512 + 132)  # of raw rows and their index keys
PLAIN = Deployment(
    tp_size=4, linear_attn_tp_size=4, kv_cache_dtype="fp8_e4m3", kv_layout="fp8_raw", mem_fraction_static=0.75,
    multimodal=False, chunked_prefill_size=16384,
)  # fmt: skip
TEN = Demand(Contexts((100,), (1,)), 10)  # two pages and five slots each
EXACT = 51 * SLOT + 20 * PAGE  # fifty slots and the pool's own, and twenty pages


def setup_of(
    deployment: Deployment, nbytes: float, resolver: Callable[..., Deployment] | None = None, release: str = "0.5.21"
) -> Setup:
    """A setup with `nbytes` for states and tokens: 160 GiB before the load, a quarter of which stays free."""
    memory = Memory(160.0, 40.0 + nbytes / GIB)
    return Setup(GEOMETRY, load_profile(release), deployment, lambda deployment: memory, resolver)


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
    off = replace(split.setup, deployment=replace(split.setup.deployment, disable_radix_cache=True))
    assert conversations_kept(twelve._replace(setup=off), TEN) == 0


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


# -- room --------------------------------------------------------------------------------------------------------------


def test_room_is_what_is_left_against_what_is_needed() -> None:
    """The card counts as 160 GiB, a quarter of it spared; 100 tokens are 25 index rows and one page of them."""
    setup = setup_of(PLAIN, EXACT)
    split = best_split(setup, TEN)
    assert split.solution is not None
    found = room(split, TEN)
    pools = device_bytes(tensor_specs(GEOMETRY, split.setup.deployment, setup.profile, split.solution.sizes))
    assert found.free == free_bytes(split.setup, split.solution) == 40 * GIB + EXACT - pools
    estimated = GIB // 2 + int(7.5 * MIB) * 10 + 384 * 1024 * 16384
    assert (found.needed, found.unsure) == (estimated + 100 * 256 * 4, int(estimated * 0.4))
    assert found.short == found.needed - found.free
    long = room(split, Demand(Contexts((1_000_000,), (1,)), 10))
    row = -(-250_000 // 256) * 256 * 4
    budget = int((found.free - GIB // 2 - int(7.5 * MIB) * 10) * 0.2)
    assert long.needed == estimated + budget // row * row


def test_the_fullest_stage_is_what_is_left() -> None:
    stages = replace(PLAIN, pp_size=2, pipeline_partition=(30, 15), disable_overlap_schedule=True)
    setup = setup_of(replace(stages, max_mamba_cache_size=50, max_total_tokens=1280), EXACT)
    solution = setup.solution()
    taken = [
        device_bytes(tensor_specs(GEOMETRY, setup.deployment, setup.profile, solution.sizes, stage))
        for stage in (range(30), range(30, 45))
    ]
    assert taken[0] > taken[1]
    assert free_bytes(setup, solution) == 40 * GIB + EXACT - taken[0]


def test_tokens_given_up_are_as_many_pages_as_are_short() -> None:
    """0.5.20 wants 2,048 rows of a million tokens' index at once: 2 GiB, graphs and activations beside."""
    tight = replace(PLAIN, chunked_prefill_size=2048, mem_fraction_static=0.99)
    demand = Demand(Contexts((1_000_000,), (1,)), 1)
    setup = setup_of(tight, -30 * GIB, release="0.5.20")
    split = best_split(setup, demand)
    assert split.solution is not None
    short = room(split, demand).short
    assert short > 0
    fewer = with_room(split, demand)
    assert fewer.solution is not None
    assert fewer.solution.tokens == split.solution.tokens - -(-short // PAGE) * 64
    assert 0 <= -room(fewer, demand).short < PAGE
    least = tokens_needed(split, demand)
    bare = split._replace(solution=split.solution._replace(tokens=least))
    assert with_room(bare, demand) is bare  # what the requests need is not given up


def test_chunks_are_halved_before_tokens_are_given_up() -> None:
    tight = replace(PLAIN, chunked_prefill_size=8192, mem_fraction_static=0.95)
    demand = Demand(Contexts((1_000_000,), (1,)), 1)
    split = best_split(setup_of(tight, -20 * GIB, release="0.5.20"), demand)
    assert split.solution is not None and room(split, demand).short > 0
    found = with_room(split, demand)
    assert found.solution is not None and found.solution.tokens == split.solution.tokens
    chunk = found.flags["chunked_prefill_size"]
    assert chunk in (2048, 4096) and room(found, demand).short <= 0
    twice = with_flags(found, {"chunked_prefill_size": 2 * chunk}, demand)
    assert twice is not None and room(twice, demand).short > 0


@pytest.mark.parametrize(
    ("fraction", "missing", "raised"), [(0.75, 0.1, 0.755), (0.75, 1.0, 0.76), (0.7525, 0.1, 0.755)]
)
def test_the_fraction_rises_by_steps(fraction: float, missing: float, raised: float) -> None:
    """A step of 0.005 is 0.8 GiB of 160."""
    nbytes = EXACT - missing * GIB + (0.75 - fraction) * 160 * GIB
    setup = setup_of(replace(PLAIN, mem_fraction_static=fraction), nbytes)
    split = best_split(setup, TEN)
    assert 0 < split.served.requests < 10
    found = raised_fraction(setup, split, TEN)
    assert found is not None and found.served.requests == 10
    assert found.flags["mem_fraction_static"] == found.setup.deployment.mem_fraction_static == raised
    assert raised_fraction(setup, found, TEN) is None  # served in full already


def test_the_fraction_stops_where_serving_needs_the_rest() -> None:
    """40 GiB stay free at 0.75 and 0.8 less a step; a million requests would take them all."""
    setup = setup_of(PLAIN, EXACT)
    many = TEN._replace(concurrency=10**6)
    split = best_split(setup, many)
    found = raised_fraction(setup, split, many)
    assert found is not None
    left = room(found, many)
    assert left.free >= left.needed + left.unsure
    step = round(found.setup.deployment.mem_fraction_static + 0.005, 3)
    more = setup.changed(mem_fraction_static=step)
    assert more is not None
    beyond = room(best_split(more, many), many)
    assert beyond.free < beyond.needed + beyond.unsure


# -- advice ------------------------------------------------------------------------------------------------------------


def test_advice_on_a_split_that_is_met_exactly() -> None:
    advice = advise(setup_of(PLAIN, EXACT), TEN)
    assert advice.holds and advice.shortage is None and advice.layouts == ()
    assert advice.command == (
        "--max-running-requests 10 --max-mamba-cache-size 50 --max-total-tokens 1280 "
        "--chunked-prefill-size 16384 --mem-fraction-static 0.75"
    )
    assert advice.conversations_kept == 0 and advice.served.requests == 10
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


def test_another_state_dtype_is_written_out() -> None:
    half = 34 * (36_864 + 524_288)
    setup = setup_of(PLAIN, 51 * half + 20 * PAGE)
    asked = advise(setup, TEN, state_dtype="bfloat16", keep_fraction=True, nearest=0)
    assert asked.holds and asked.flags == flags_of(10, 50, 1280) | {"mamba_ssm_dtype": "bfloat16"}
    assert "mamba_ssm_dtype" not in advise(setup, TEN, state_dtype="float32", keep_fraction=True, nearest=0).flags


def test_layouts_are_asked_for_from_the_smallest() -> None:
    """Every width from 4 to 64, as it is and with twice the workers, with each change of a dtype or none."""
    asked: list[dict[str, Any]] = []

    def resolver(**changes: Any) -> Deployment:
        asked.append(changes)
        if changes.get("tp_size") != 16 or "dp_size" in changes:
            raise RefusedError("not here")
        return replace(PLAIN, **changes, linear_attn_tp_size=16)

    advice = advise(setup_of(replace(PLAIN, kv_layout="bf16"), EXACT / 3, resolver), TEN, keep_fraction=True)
    assert [layout.changes for layout in advice.layouts] == [{"tp_size": 16}]  # what only adds to it is not offered
    assert (advice.layouts[0].gpus, advice.layouts[0].served.requests) == (16, 10)
    singles: list[dict[str, Any]] = [{}, {"kv_cache_dtype": "fp8_e4m3"}, {"mamba_ssm_dtype": "bfloat16"}]
    workers: list[dict[str, Any]] = [{}, {"dp_size": 2, "enable_dp_attention": True}]
    widths: list[dict[str, Any]] = [{}, {"tp_size": 8}]
    smaller = [width | worker | single for width in widths for worker in workers for single in singles]
    alone: list[dict[str, Any]] = [{}, {"mamba_ssm_dtype": "bfloat16"}]  # need no resolver
    expected = [changes for changes in smaller if changes not in alone] + [{"tp_size": 16}]
    tried = [changes for changes in asked if not {"chunked_prefill_size", "max_total_tokens"} & changes.keys()]
    assert sorted(map(str, map(sorted, map(dict.items, tried)))) == sorted(
        map(str, map(sorted, map(dict.items, expected)))
    )
    assert [changes.get("tp_size", 0) for changes in tried] == sorted(changes.get("tp_size", 0) for changes in tried)
