"""Room beside the pools: what is left, what is needed, and what is given up for it, counted by hand."""

from dataclasses import replace

import pytest
from setups import EXACT, GEOMETRY, PAGE, PLAIN, TEN, one_rank, setup_of

from glm_kvplan.contexts import Contexts
from glm_kvplan.engines.sglang.components import tensor_specs
from glm_kvplan.engines.sglang.rank import Rank
from glm_kvplan.engines.sglang.sizing.free_memory import free_bytes
from glm_kvplan.engines.sglang.sizing.served_requests import Demand
from glm_kvplan.engines.sglang.sizing.serving_headroom import raised_fraction, room, with_room
from glm_kvplan.engines.sglang.sizing.split import best_split, tokens_needed, with_flags
from glm_kvplan.engines.sglang.sizing.what_if import Memory
from glm_kvplan.tensor import device_bytes
from glm_kvplan.units import GIB, MIB


def test_room_is_what_is_left_against_what_is_needed() -> None:
    """The card counts as 160 GiB, a quarter of it spared; 100 tokens are 25 index rows and one page of them."""
    setup = setup_of(PLAIN, EXACT)
    split = best_split(setup, TEN)
    assert split.solution is not None
    found = room(split, TEN)
    pools = device_bytes(tensor_specs(one_rank(split.setup.deployment, setup.profile), split.solution.sizes))
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
        device_bytes(tensor_specs(Rank(GEOMETRY, setup.deployment, setup.profile, stage), solution.sizes))
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
    assert 0 <= -room(fewer, demand).short < PAGE and type(fewer.flags["max_total_tokens"]) is int
    least = tokens_needed(split, demand)
    bare = split._replace(solution=split.solution._replace(tokens=least))
    assert with_room(bare, demand) is bare  # what the requests need is not given up


@pytest.mark.parametrize("workers", [1, 2])
def test_chunks_are_halved_before_tokens_are_given_up(workers: int) -> None:
    tight = replace(
        PLAIN,
        chunked_prefill_size=8192,
        mem_fraction_static=0.95,
        attn_dp_size=workers,
        linear_attn_tp_size=4 // workers,
    )
    demand = Demand(Contexts((1_000_000,), (1,)), 1)
    split = best_split(setup_of(tight, -20 * GIB, release="0.5.20"), demand)
    assert split.solution is not None and room(split, demand).short > 0
    found = with_room(split, demand)
    assert found.solution is not None and found.solution.tokens == split.solution.tokens
    chunk = found.flags["chunked_prefill_size"]
    assert chunk in (2048 * workers, 4096 * workers) and room(found, demand).short <= 0
    assert type(chunk) is int and found.setup.deployment.chunked_prefill_size * workers == chunk
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


def test_the_fraction_rises_no_further_than_it_serves_more() -> None:
    """A request of a million tokens takes nine steps; and on a card of 16,000 GiB there is room up to 0.995."""
    setup = setup_of(PLAIN, 60 * GIB)
    million = Demand(Contexts((1_000_000,), (1,)), 1000)
    split = best_split(setup, million)
    found = raised_fraction(setup, split, million)
    assert found is not None
    step = setup.changed(mem_fraction_static=round(found.flags["mem_fraction_static"] - 0.005, 3))
    assert step is not None and best_split(step, million).served.requests < found.served.requests
    vast = replace(setup, memory=lambda deployment: Memory(16_000.0, 5000.0))
    most = raised_fraction(vast, best_split(vast, million), million._replace(concurrency=10**6))
    assert most is not None and most.flags["mem_fraction_static"] == 0.995
