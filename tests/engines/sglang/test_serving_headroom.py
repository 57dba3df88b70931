"""Headroom beside the pools: what is left, what is needed, and what is given up for it, counted by hand."""

import pytest
from hand_counted import EXACT, PAGE, PLAIN, SLOT, TEN, one_rank, server_of

from glm_kvplan.contexts import Contexts
from glm_kvplan.engines.sglang.components import tensor_specs
from glm_kvplan.engines.sglang.rank import ranks
from glm_kvplan.engines.sglang.sizing.server import Server
from glm_kvplan.engines.sglang.sizing.serving_headroom import headroom_of, raised_fraction, with_headroom
from glm_kvplan.engines.sglang.sizing.split import best_split, tokens_needed, with_flags
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.tensor import device_bytes
from glm_kvplan.units import GIB, MIB
from glm_kvplan.workload import Demand


def test_room_is_what_is_left_against_what_is_needed() -> None:
    """The card counts as 160 GiB, a quarter of it spared; 100 tokens are 25 index rows and one page of them."""
    server = server_of(PLAIN, EXACT)
    split = best_split(server, TEN)
    assert split.solution is not None
    found = headroom_of(split, TEN)
    pools = device_bytes(tensor_specs(one_rank(split.server.deployment, server.plan.profile), split.solution.sizes))
    assert found.usable == split.server.unallocated == 40 * GIB + EXACT - pools
    estimated = GIB // 2 + int(7.5 * MIB) * 10 + 384 * 1024 * 16384
    assert (found.needed, found.unsure) == (estimated + 100 * 256 * 4, int(estimated * 0.4))
    assert found.short == found.needed - found.usable
    long = headroom_of(split, Demand(Contexts((1_000_000,), (1,)), 10))
    row = -(-250_000 // 256) * 256 * 4
    budget = int((found.usable - GIB // 2 - int(7.5 * MIB) * 10) * 0.2)
    assert long.needed == estimated + budget // row * row


def test_the_fullest_stage_is_what_is_left() -> None:
    stages = PLAIN | {"pp_size": 2, "max_mamba_cache_size": 50, "max_total_tokens": 1280}
    server = server_of(stages, EXACT, environment={"SGLANG_PP_LAYER_PARTITION": "30,15"})
    assert [rank.stage for rank in ranks(server.plan)] == [range(30), range(30, 45)]
    taken = [device_bytes(tensor_specs(rank, server.sizes)) for rank in ranks(server.plan)]
    assert taken[0] > taken[1] and server.stage == 0
    assert server.unallocated == server.usable == 40 * GIB + EXACT - taken[0]


def test_buffers_on_the_way_to_the_host_are_taken() -> None:
    """HiCache's two buffers of 64 pages: whole rows and index keys of eleven layers, from 0.5.22 on."""
    flags = PLAIN | {"max_mamba_cache_size": 50, "enable_hierarchical_cache": True, "hicache_size": 50}
    for release, page, rows in (("0.5.21", 64, 11 * 512), ("0.5.22", 256, 11 * (512 + 33))):
        server = server_of(flags, 51 * SLOT + 200 * 256 * 11 * 644, release)
        pools = device_bytes(tensor_specs(server.ranks[0], server.sizes))
        assert server.unallocated == int(server.budget.available_gib * GIB) - pools - 64 * page * rows


def test_tokens_given_up_are_as_many_pages_as_are_short() -> None:
    """0.5.20 wants 2,048 rows of a million tokens' index at once: 2 GiB, graphs and activations beside."""
    tight = PLAIN | {"chunked_prefill_size": 2048, "mem_fraction_static": 0.99}
    demand = Demand(Contexts((1_000_000,), (1,)), 1)
    split = best_split(server_of(tight, -30 * GIB, release="0.5.20"), demand)
    assert split.solution is not None
    short = headroom_of(split, demand).short
    assert short > 0
    fewer = with_headroom(split, demand)
    assert fewer.solution is not None
    assert fewer.solution.tokens == split.solution.tokens - -(-short // PAGE) * 64
    assert 0 <= -headroom_of(fewer, demand).short < PAGE and type(fewer.flags["max_total_tokens"]) is int
    least = tokens_needed(split, demand)
    bare = split._replace(solution=split.solution._replace(tokens=least))
    assert with_headroom(bare, demand) is bare  # what the requests need is not given up


@pytest.mark.parametrize("workers", [1, 2])
def test_chunks_are_halved_before_tokens_are_given_up(workers: int) -> None:
    groups = {"dp_size": workers, "enable_dp_attention": True} if workers > 1 else {}
    tight = PLAIN | groups | {"chunked_prefill_size": 8192 * workers, "mem_fraction_static": 0.95}
    demand = Demand(Contexts((1_000_000,), (1,)), 1)
    split = best_split(server_of(tight, -20 * GIB, release="0.5.20"), demand)
    assert split.solution is not None and headroom_of(split, demand).short > 0
    found = with_headroom(split, demand)
    assert found.solution is not None and found.solution.tokens == split.solution.tokens
    chunk = found.flags["chunked_prefill_size"]
    assert chunk in (2048 * workers, 4096 * workers) and headroom_of(found, demand).short <= 0
    assert type(chunk) is int and found.server.deployment.chunked_prefill_size * workers == chunk
    twice = with_flags(found, {"chunked_prefill_size": 2 * chunk}, demand)
    assert twice is not None and headroom_of(twice, demand).short > 0


@pytest.mark.parametrize(
    ("fraction", "missing", "raised"), [(0.75, 0.1, 0.755), (0.75, 1.0, 0.76), (0.7525, 0.1, 0.755)]
)
def test_the_fraction_rises_by_steps(fraction: float, missing: float, raised: float) -> None:
    """A step of 0.005 is 0.8 GiB of 160."""
    nbytes = EXACT - missing * GIB + (0.75 - fraction) * 160 * GIB
    server = server_of(PLAIN | {"mem_fraction_static": fraction}, nbytes)
    split = best_split(server, TEN)
    assert 0 < split.served.requests < 10
    found = raised_fraction(server, split, TEN)
    assert found is not None and found.served.requests == 10
    assert found.flags["mem_fraction_static"] == found.server.deployment.mem_fraction_static == raised
    assert raised_fraction(server, found, TEN) is None  # served in full already


def test_the_fraction_stops_where_serving_needs_the_rest() -> None:
    """40 GiB stay free at 0.75 and 0.8 less a step; a million requests would take them all."""
    server = server_of(PLAIN, EXACT)
    many = TEN._replace(concurrency=10**6)
    split = best_split(server, many)
    found = raised_fraction(server, split, many)
    assert found is not None
    left = headroom_of(found, many)
    assert left.usable >= left.needed + left.unsure
    step = round(found.server.deployment.mem_fraction_static + 0.005, 3)
    beyond = headroom_of(best_split(server.with_flags(mem_fraction_static=step), many), many)
    assert beyond.usable < beyond.needed + beyond.unsure


def test_the_fraction_rises_no_further_than_it_serves_more() -> None:
    """A request of a million tokens takes nine steps; and on a card of 16,000 GiB there is room up to 0.995."""
    server = server_of(PLAIN, 60 * GIB)
    million = Demand(Contexts((1_000_000,), (1,)), 1000)
    split = best_split(server, million)
    found = raised_fraction(server, split, million)
    assert found is not None
    step = server.with_flags(mem_fraction_static=round(found.flags["mem_fraction_static"] - 0.005, 3))
    assert best_split(step, million).served.requests < found.served.requests
    vast = Server(server.plan, MemoryGiven(16_000.0, 5000.0))
    most = raised_fraction(vast, best_split(vast, million), million._replace(concurrency=10**6))
    assert most is not None and most.flags["mem_fraction_static"] == 0.995
