"""The memory before the blocks: exact where it is given, an interval that covers every public figure where not."""

import pytest
from vllm_oracle import blocks

from glm_kvplan.engines.planner import plan
from glm_kvplan.engines.vllm import memory_before
from glm_kvplan.engines.vllm.memory_before import Available, available
from glm_kvplan.engines.vllm.start import start
from glm_kvplan.engines.vllm.weight_placement import placement
from glm_kvplan.errors import InputError, RefusedError
from glm_kvplan.memory.gpu import find_gpu
from glm_kvplan.memory.weights import estimate_weights
from glm_kvplan.units import GIB

TP4: dict[str, object] = {"tensor_parallel_size": 4, "max_model_len": 131072}
MTP: dict[str, object] = {"spec_method": "mtp", "spec_tokens": 3}
EP: dict[str, object] = {"enable_expert_parallel": True}
TP8: dict[str, object] = {"tensor_parallel_size": 8, "max_model_len": 131072, "gpu_memory_utilization": 0.9}
# H200, releases 0.30 and 0.31, 8,192 tokens a step: what the log prints in GiB. Activations include the graphs.
PRINTED = [
    # flags, weights and non-torch, activations with graphs, graphs, available
    (TP4, 76.98, 4.34, 1.73, 47.29),
    ({**TP4, **MTP}, 78.99, 4.56, 2.18, 45.07),
    ({**TP4, **MTP, **EP}, 78.64, 5.15, 3.14, 44.83),
    (TP8, 39.98, 4.04, 1.2, 81.79),
]


def estimated(
    flags: dict[str, object], release: str = "0.30.0", gpu: str = "h200", checkpoint: str = "fp8"
) -> Available:
    rank = blocks(flags, release, gpu).rank
    weights = estimate_weights(rank.geometry, placement(rank), "fp8")
    return available(rank, find_gpu(gpu), weights=weights)


def covers(found: Available, name: str, gib: float, *more: str) -> bool:
    parts = [part for part in found.parts if part.name in (name, *more)]
    error = sum(part.error_gib**2 for part in parts) ** 0.5
    return abs(-sum(part.gib for part in parts) - gib) <= error


@pytest.mark.parametrize(("flags", "loaded", "activation", "graphs", "left"), PRINTED)
def test_every_public_profile_lies_in_the_interval(
    flags: dict[str, object], loaded: float, activation: float, graphs: float, left: float
) -> None:
    found = estimated(flags)
    assert found.how == "estimated" and found.certainty == "estimated"
    assert found.low_bytes <= left * GIB <= found.high_bytes
    assert covers(found, "target weights", loaded, "draft weights", "context, communication, workspaces")
    assert covers(found, "CUDA graphs", graphs)
    assert covers(found, "activations", activation - graphs, "indexer workspace")


@pytest.mark.parametrize(("flags", "loaded", "activation", "graphs", "left"), PRINTED)
def test_the_printed_amounts_add_up_to_the_share_of_the_card(
    flags: dict[str, object], loaded: float, activation: float, graphs: float, left: float
) -> None:
    """Which says that the printed activations hold the graphs, and what CUDA calls an H200's memory."""
    share = float(str(flags.get("gpu_memory_utilization", 0.92)))
    assert (left + loaded + activation) / share == pytest.approx(memory_before.total_gib(find_gpu("h200")), abs=0.03)


def test_a_public_boot_of_eighty_gigabyte_cards_lies_in_the_interval() -> None:
    """H100 x8, TP8, prefix caching off (doc id 71464252074): 28.73 GiB; its context is not printed, at most 262,144."""
    found = estimated({"tensor_parallel_size": 8, "enable_prefix_caching": False, "max_model_len": 262144}, gpu="h100")
    assert found.low_bytes <= 28.73 * GIB <= found.high_bytes


def test_graphs_on_workstation_cards_are_what_a_fork_printed() -> None:
    """local-inference-lab#501: 20.88 GiB at the automatic envelope, 9.56 GiB with captures up to 128."""
    flags = {"tensor_parallel_size": 4, **MTP}
    assert covers(estimated(flags, "0.33.0", "rtxpro6000"), "CUDA graphs", 20.88)
    few = {**flags, "max_cudagraph_capture_size": 128}
    assert covers(estimated(few, "0.33.0", "rtxpro6000"), "CUDA graphs", 9.56)


def test_the_indexers_workspace_is_known_to_the_byte() -> None:
    """5.5 GB at the model's context in 0.30 and 0.31, 0.55 GB from 0.32 on (VLLM's get_max_prefill_buffer_size)."""
    for release, nbytes in (("0.30.0", 132 * 40 * 1048576), ("0.33.0", 132 * 8 * 2 * 1048576 // 4)):
        parts = {part.name: part for part in estimated({"tensor_parallel_size": 4}, release).parts}
        assert parts["indexer workspace"].gib == -nbytes / GIB
        assert parts["indexer workspace"].error_gib == 0


def test_given_bytes_are_exact() -> None:
    found = blocks({**TP4, "kv_cache_memory_bytes": 6442450944, "max_num_seqs": 64}, "0.30.0")
    memory = available(found.rank, find_gpu("h200"))
    assert memory.nbytes == memory.low_bytes == memory.high_bytes == 6442450944
    assert memory.how == "given"
    assert start(found, memory.nbytes).count == 6442450944 // found.nbytes


def test_a_printed_number_is_known_to_half_its_last_digit() -> None:
    found = blocks(TP4, "0.30.0")
    memory = available(found.rank, find_gpu("h200"), available_gib=47.29)
    assert memory.how == "measured" and memory.certainty == "derived"
    assert found.count(memory.low_bytes) <= 3791 <= found.count(memory.high_bytes)
    exact = available(found.rank, find_gpu("h200"), available_gib=50777806464 / GIB)
    assert exact.low_bytes == exact.nbytes == exact.high_bytes


def test_images_on_the_gpu_are_taken_from_the_blocks() -> None:
    flags: dict[str, object] = {**TP4, "kv_cache_memory_bytes": 6442450944, "mm_ipc_gpu_memory_gb": 1}
    assert available(blocks(flags).rank, find_gpu("h200")).nbytes == 5 * GIB
    alone = {**flags, "language_model_only": True}
    assert available(blocks(alone).rank, find_gpu("h200")).nbytes == 6 * GIB


def test_without_the_reserve_for_graphs_the_blocks_get_it() -> None:
    rank = blocks(TP4, VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS="0").rank
    assert not rank.deployment.graphs_reserved
    assert not blocks({**TP4, "enforce_eager": True}).rank.deployment.cuda_graphs


def test_less_free_than_the_share_is_refused() -> None:
    rank = blocks(TP4).rank
    with pytest.raises(RefusedError, match=r"120\.00 GiB are free and --gpu-memory-utilization 0\.92"):
        available(rank, find_gpu("h200"), pre_gib=120.0, weights_gib=75.0)


@pytest.mark.parametrize("flags", [TP4, {**TP4, **MTP}])
def test_unknown_weights_are_asked_for(flags: dict[str, object]) -> None:
    with pytest.raises(InputError, match="weights"):
        available(blocks(flags).rank, find_gpu("h200"), weights_gib=75.0 if "spec_tokens" in flags else None)


def test_experts_lie_over_all_engines() -> None:
    alone = placement(blocks({"tensor_parallel_size": 4}).rank)
    eight = placement(blocks({"tensor_parallel_size": 1, "data_parallel_size": 8, **EP}).rank)
    assert (alone.moe, alone.shared, alone.attn_tp) == (4, 4, 4)
    assert (eight.moe, eight.shared, eight.attn_tp) == (8, 1, 1)


@pytest.mark.parametrize(("mib", "batch"), [(163_840, 16384), (163_839, 8192), (71_680, 8192), (71_679, 2048)])
def test_the_classes_of_cards_begin_at_whole_gib(mib: int, batch: int) -> None:
    """engine/arg_utils.py:2730-2740 at 0.30.0, :2973-2984 at 0.33.0: 160 GiB or more, 70 GiB or more."""
    made = plan({"tensor_parallel_size": 4, "max_model_len": 131072}, engine="vllm", gpu=f"b200:{mib}")
    assert made.deployment.max_num_batched_tokens == batch
