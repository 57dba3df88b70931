"""Layouts of one vLLM server on so many GPUs, and what makes each serve its share: limits and the share of the card."""

import pytest

import glm_kvplan as kv
from glm_kvplan.contexts import parse_contexts
from glm_kvplan.engines.vllm.block_bounds import block_bounds
from glm_kvplan.engines.vllm.plan import Plan
from glm_kvplan.engines.vllm.served_requests import held, served
from glm_kvplan.engines.vllm.server_layouts import advise_server, server_layouts
from glm_kvplan.engines.vllm.starting import begin
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.workload import Demand


def plan(**flags: object) -> Plan:
    made: Plan = kv.plan(flags, engine="vllm-0.33.0", gpu="h200")
    return made


def layouts(gpus: int, per_host: int, **flags: object) -> set[tuple[int, int, int]]:
    """(tensor, data, hosts) of each; 0 where the layout leaves a flag alone."""
    names = ("tensor_parallel_size", "data_parallel_size", "nnodes")
    found = [tuple(one.get(name, 0) for name in names) for one in server_layouts(plan(**flags), gpus, per_host)]
    assert len(found) == len(set(found))
    return set(found)  # type: ignore[arg-type]


def test_widths_are_powers_of_two_and_engines_fill_a_part() -> None:
    eight = {
        (1, 0, 0),
        (1, 2, 0),
        (1, 4, 0),
        (1, 8, 0),
        (2, 0, 0),
        (2, 2, 0),
        (2, 4, 0),
        (4, 0, 0),
        (4, 2, 0),
        (8, 0, 0),
    }
    assert layouts(8, 8) == eight
    assert layouts(6, 8) == {(1, 0, 0), (1, 2, 0), (1, 3, 0), (1, 6, 0), (2, 0, 0), (2, 3, 0)}
    assert max(width for width, _, _ in layouts(128, 128)) == 64  # the model's heads


def test_what_the_user_gave_stays() -> None:
    four: dict[str, object] = {"tensor_parallel_size": 4}
    assert layouts(8, 8, **four) == {(0, 0, 0), (0, 2, 0)}
    assert layouts(16, 16, **four, data_parallel_size=2) == {(0, 0, 0)}
    assert layouts(8, 8, data_parallel_size=4) == {(1, 0, 0), (2, 0, 0)}
    assert layouts(12, 16, **four, data_parallel_size=2) == set()
    assert layouts(16, 4, **four, nnodes=2, data_parallel_size=4) == {(0, 0, 0)}


def test_a_server_larger_than_a_host_takes_whole_ones() -> None:
    four: dict[str, object] = {"tensor_parallel_size": 4}
    assert layouts(16, 4, **four) == {(0, 0, 0), (0, 2, 2), (0, 4, 4)}
    assert layouts(8, 4, tensor_parallel_size=8) == {(0, 0, 2)}
    assert layouts(8, 4, tensor_parallel_size=2) == {(0, 0, 0), (0, 2, 0), (0, 4, 2)}
    # 4 GPUs lie on no hosts of 6 evenly, 2 do; 8 GPUs fill none of 6
    assert layouts(24, 6, **four, enable_expert_parallel=True) == {(0, 0, 0)}
    assert (0, 6, 2) in layouts(12, 6, tensor_parallel_size=2, enable_expert_parallel=True)


def share(lengths: str, requests: int) -> Demand:
    return Demand(parse_contexts(lengths), requests)


def test_a_server_that_serves_its_share_is_left_as_it_is() -> None:
    made, load = plan(tensor_parallel_size=4, data_parallel_size=2), share("128k", 40)
    found, begun = advise_server(made, MemoryGiven(), load), begin(made, MemoryGiven())
    assert begun.weights is not None and found.plan is made
    assert (dict(found.flags), found.holds, found.served, found.limit) == ({}, True, 40, "blocks")
    assert found.most == 2 * held(begun.start, load.contexts) == served(begun.start, load.contexts).requests
    bounds = block_bounds(begun, MemoryGiven(), load.contexts, 20)
    assert found.sizes == bounds and bounds.floor_blocks == 20 * made.blocks.needed(131072) + 1
    assert found.floor_tokens == bounds.floor_blocks * made.blocks.size
    assert found.ceiling_tokens == bounds.ceiling_blocks * made.blocks.size
    assert found.warnings == tuple(begun.weights.notes) and (found.memory, found.failure) == (begun.memory, "")
    assert found.at_least() == 40 and found.admitted == 2 * 1024


def test_more_of_the_card_until_it_is_sure() -> None:
    made = plan(tensor_parallel_size=4)
    low, middle = (
        served(one, parse_contexts("128k")).requests
        for one in (begin(made, MemoryGiven()).low, begin(made, MemoryGiven()).start)
    )
    assert low < middle
    assert not advise_server(made, MemoryGiven(), share("128k", low)).flags
    sure = advise_server(made, MemoryGiven(), share("128k", middle))
    assert list(sure.flags) == ["gpu_memory_utilization"] and sure.at_least() == middle == sure.served
    step = sure.flags["gpu_memory_utilization"]
    assert isinstance(step, float) and step == round(step, 2) > 0.92
    before = begin(made.with_flags(gpu_memory_utilization=round(step - 0.01, 2)), MemoryGiven())
    assert served(before.low, parse_contexts("128k")).requests < middle
    most = advise_server(made, MemoryGiven(), share("128k", 10_000))
    assert (most.flags["gpu_memory_utilization"], most.holds, most.served, most.limit) == (
        0.97,
        False,
        most.most,
        "blocks",
    )
    for flags in (
        {"gpu_memory_utilization": 0.92},
        {"num_gpu_blocks_override": 3000},
        {"kv_cache_memory_bytes": 40 << 30},
    ):
        fixed = advise_server(made.with_flags(**flags), MemoryGiven(), share("128k", 10_000))
        assert "gpu_memory_utilization" not in fixed.flags


@pytest.mark.parametrize(("engines", "requests"), [(1, 300), (2, 300)])
def test_limits_grow_to_the_share_of_an_engine(engines: int, requests: int) -> None:
    """Of both limits the one of length comes first; then so many requests as one engine has of them."""
    made = plan(tensor_parallel_size=8, data_parallel_size=engines, max_num_seqs=16, max_model_len=4096)
    found = advise_server(made, MemoryGiven(), share("8k", requests))
    assert dict(found.flags) == {"max_model_len": 8192, "max_num_seqs": requests // engines}
    assert found.holds and found.served == requests and found.admitted == requests
    assert served(begin(found.plan, MemoryGiven()).start, parse_contexts("8k")).limit == "--max-num-seqs"
    assert found.limit == "blocks"  # the limit is as high as is asked: it ends nothing
    same = advise_server(made.with_flags(max_num_seqs=300, max_model_len=8192), MemoryGiven(), share("8k", requests))
    assert not same.flags


def test_a_limit_above_the_blocks_is_not_written() -> None:
    made = plan(tensor_parallel_size=4, max_num_seqs=16, gpu_memory_utilization=0.92)
    count = begin(made, MemoryGiven()).start.count
    assert advise_server(made, MemoryGiven(), share("1k", count)).flags["max_num_seqs"] == count
    assert not advise_server(made, MemoryGiven(), share("1k", count + 1)).flags


def test_a_length_that_the_model_or_the_blocks_end() -> None:
    made = plan(tensor_parallel_size=4)
    long = advise_server(made, MemoryGiven(), share("2m", 1))
    assert (long.holds, long.served, long.most, long.limit) == (False, 0, 0, "--max-model-len")
    assert long.flags.keys() <= {"gpu_memory_utilization"}
    fitted = plan(tensor_parallel_size=4, max_model_len=-1, num_gpu_blocks_override=100, max_num_seqs=16)
    assert not advise_server(fitted, MemoryGiven(), share("1m", 1)).flags


def test_limits_that_let_nothing_start_are_lowered() -> None:
    """No request of the model's length fits the blocks, nor a state for each of 1,024 requests."""
    made = plan(tensor_parallel_size=4, num_gpu_blocks_override=500)
    assert begin(made, MemoryGiven()).failure is not None
    found = advise_server(made, MemoryGiven(), share("32k", 4))
    assert dict(found.flags) == {"max_model_len": 32768, "max_num_seqs": 4}
    assert found.holds and found.failure == ""
    more = advise_server(made, MemoryGiven(), share("32k", 900))
    assert more.flags["max_num_seqs"] == 500 and not more.holds
    none = advise_server(made, MemoryGiven(), share("1m", 1))
    assert none.failure.startswith("one request of 1,048,576 tokens") and none.served == 0
