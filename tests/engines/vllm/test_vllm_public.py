"""What public vLLM logs print of this model: blocks, paddings and cache sizes (0.30.0 and 0.31.0)."""

import pytest
from vllm_oracle import blocks, resolved

from glm_kvplan.engines.vllm.components import kda_state
from glm_kvplan.engines.vllm.start import start
from glm_kvplan.units import GIB


def mtp(tokens: int) -> dict[str, object]:
    return {"speculative_config": {"method": "mtp", "num_speculative_tokens": tokens}}


@pytest.mark.parametrize(
    ("flags", "context", "count", "needed", "tokens", "concurrency"),
    [
        # H200 x8, TP8, --gpu-memory-utilization 0.90 (doc id 69102865712)
        ({"tensor_parallel_size": 8}, 131072, 11802, 214, 7_228_559, 55.15),
        # H100 x8, TP8, prefix caching off (doc id 71464252074)
        ({"tensor_parallel_size": 8, "enable_prefix_caching": False}, 262144, 4145, 415, 2_618_281, None),
        # H200 NVL x2, TP2, MTP3 at the model's own context (vllm#55221), then the same in fp8
        ({"tensor_parallel_size": 2, **mtp(3)}, 1048576, 1140, 472, 2_532_577, None),
        ({"tensor_parallel_size": 2, "kv_cache_dtype": "fp8", **mtp(3)}, 1048576, 1078, 251, 4_503_445, None),
        # H200 x4, TP4: no drafts, 3 and 5 draft tokens (doc id 58946482992)
        ({"tensor_parallel_size": 4}, 131072, 3791, 123, 4_039_788, None),
        ({"tensor_parallel_size": 4, **mtp(3)}, 131072, 3311, 130, 3_338_303, None),
        ({"tensor_parallel_size": 4, **mtp(5)}, 131072, 3311, 136, 3_191_024, None),
    ],
)
def test_cache_sizes_of_public_boots(
    flags: dict[str, object], context: int, count: int, needed: int, tokens: int, concurrency: float | None
) -> None:
    found = blocks({"max_model_len": context, "max_num_seqs": 64, **flags}, "0.30.0")
    begun = start(found, count * found.nbytes)
    assert found.needed(context) == needed
    assert begun.printed_tokens == tokens
    assert concurrency is None or round(begun.concurrency, 2) == concurrency


@pytest.mark.parametrize(
    ("gib", "flags", "count"),
    [
        (81.79, {"tensor_parallel_size": 8}, 11802),
        (28.73, {"tensor_parallel_size": 8, "enable_prefix_caching": False}, 4145),
        (47.29, {"tensor_parallel_size": 4}, 3791),
        (45.07, {"tensor_parallel_size": 4, **mtp(3)}, 3311),
    ],
)
def test_the_printed_memory_gives_the_printed_blocks(gib: float, flags: dict[str, object], count: int) -> None:
    """The log prints two decimals: the blocks lie within a hundredth of a GiB."""
    found = blocks({"max_model_len": 131072, **flags}, "0.30.0")
    assert found.count(int((gib - 0.005) * GIB)) <= count <= found.count(int((gib + 0.005) * GIB))


@pytest.mark.parametrize(("tokens", "printed"), [(0, 8.68), (2, 6.27), (3, 5.11), (5, 2.86)])
def test_paddings_of_public_boots_at_tp4(tokens: int, printed: float) -> None:
    rank = blocks({"tensor_parallel_size": 4, **(mtp(tokens) if tokens else {})}, "0.30.0").rank
    state, page = kda_state.layer_bytes(rank), kda_state.page_bytes(rank)
    assert round(100 * (page - state) / state, 2) == printed


@pytest.mark.parametrize(
    ("tensor", "gpu", "flags", "size"),
    [
        (4, "h200", {}, 1152),
        (8, "h200", {}, 640),
        (2, "h200", mtp(3), 2304),
        (1, "h200", mtp(3), 4480),
        (1, "h200", {}, 4352),
        (2, "h200", {}, 2176),
        (1, "h200", {"kv_cache_dtype": "fp8"}, 8576),
        (8, "h200", {"kv_cache_dtype": "fp8", **mtp(3)}, 1152),
        (1, "rtxpro6000", {}, 8704),
        (4, "rtxpro6000", {}, 2304),
        (2, "gb10", mtp(3), 4608),
    ],
)
def test_block_sizes(tensor: int, gpu: str, flags: dict[str, object], size: int) -> None:
    for release in ("0.30.0", "0.33.0"):
        assert resolved({"tensor_parallel_size": tensor, **flags}, release, gpu).block_size == size


@pytest.mark.parametrize(
    ("release", "gpu", "tensor", "blocks_held", "tokens"),
    [
        ("0.30.0", "h200", 4, 16, 18_432),
        ("0.33.0", "h200", 4, 19, 21_888),
        ("0.33.0", "gb10", 2, 19, 87_552),
    ],
)
def test_what_a_request_holds_before_its_prompt(
    release: str, gpu: str, tensor: int, blocks_held: int, tokens: int
) -> None:
    found = blocks({"tensor_parallel_size": tensor, **mtp(3)}, release, gpu)
    assert found.fixed == blocks_held
    assert found.fixed * found.tokens_a_block == tokens
