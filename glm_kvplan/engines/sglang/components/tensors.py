"""Every tensor the engine allocates for a deployment: the only description of an allocation in this package.

Shapes come from the geometry and the sizes, never from a ledger's bytes: that the two agree is a finding.
"""

from glm_kvplan.engines.sglang.components import pool_units as counts
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.engines.sglang.profile import EngineProfile
from glm_kvplan.engines.sglang.rank import Rank
from glm_kvplan.engines.tensor import TensorSpec
from glm_kvplan.model.geometry import Geometry

QUANT_BLOCK = 128  # elements that share one fp32 scale, in the latent row and in the index key
SCALE_BYTES = 4
ROPE_BYTES = 2  # the RoPE part of a scaled row stays bf16
REPLAY_RECORDS = 16  # draft inputs in one replay ring: the default of --linear-replayssm-cache-len

_LATENT = "mem_cache/memory_pool.py:4457-4464 at 0.5.21"
_INDEX = "mem_cache/index_key_cache.py:14-37 at 0.5.21"
_TAIL = "mem_cache/memory_pool.py:4972-5022 at 0.5.21"
_STATE = "mem_cache/memory_pool.py:616-647 at 0.5.21"
_RING = "mem_cache/memory_pool.py:656-742 at 0.5.21"
_SNAPSHOT = "mem_cache/memory_pool.py:777-858 at 0.5.21"
_REQUESTS = "mem_cache/memory_pool.py:286-309 at 0.5.21"
_MAPS = "mem_cache/memory_pool.py:1380-1392 at 0.5.21"
_FREE_SLOTS = "mem_cache/memory_pool.py:1321-1324 at 0.5.21"
_FREE_PAGES = "mem_cache/allocator/paged.py:337-340 at 0.5.21"


def tensor_specs(rank: Rank, sizes: PoolSizes) -> tuple[TensorSpec, ...]:
    """The tensors of one rank with pools of `sizes`."""
    geometry, deployment, _, stage = rank
    rows = counts.request_rows(deployment, sizes)
    target, indexed = geometry.full_attention_in(stage), geometry.index_in(stage)
    draft = counts.draft_layers(rank)
    pages = (sizes.tokens // deployment.page_size,)
    specs = (
        *_request_specs(deployment, rows),
        *_state_specs(rank, sizes),
        *_token_specs("", target, indexed, rank, sizes.tokens, rows),
        *_token_specs("draft.", draft, draft, rank, sizes.tokens, rows),
        _device("token_allocator.free_pages", "allocator", 1, "int64", pages, False, _FREE_PAGES, "free_lists"),
    )
    return tuple(spec for spec in specs if spec.count and spec.shape[0])


def latent_row_elements(rank: Rank) -> tuple[str, int]:
    """Dtype and elements of one token's row in one full-attention layer.

    Source: mem_cache/kv_cache_configurator.py:2572-2627 at 0.5.21.
    """
    geometry, deployment, profile, _ = rank
    if deployment.kv_layout == "bf16":
        return "bfloat16", geometry.latent_width
    if deployment.kv_layout == "fp8_raw":
        return "uint8", geometry.latent_width
    if profile.scaled_row_bytes is not None:
        return "uint8", profile.scaled_row_bytes
    scales = geometry.kv_lora_rank // QUANT_BLOCK * SCALE_BYTES
    return "uint8", geometry.kv_lora_rank + scales + geometry.qk_rope_head_dim * ROPE_BYTES


def index_page_elements(geometry: Geometry, page_size: int, profile: EngineProfile) -> int:
    """Bytes of one physical page of index keys with their scales (8,448 as published, in every release)."""
    keys = page_size // geometry.index_kpool if profile.index_rows_pooled else page_size
    return keys * (geometry.index_head_dim + geometry.index_head_dim // QUANT_BLOCK * SCALE_BYTES)


def state_shapes(rank: Rank) -> tuple[tuple[int, int], tuple[int, int, int]]:
    """One slot of one KDA layer on one rank: the convolution window's shape and the recurrent state's.

    Source: configs/mamba_utils.py:324-369 at 0.5.21.
    """
    shards = rank.deployment.linear_attn_tp_size
    taps, channels = rank.geometry.conv_state_shape
    heads, values, keys = rank.geometry.temporal_state_shape
    return (taps, channels // shards), (heads // shards, values, keys)


def _device(
    name: str, pool: str, count: int, dtype: str, shape: tuple[int, ...], charged: bool, source: str, component: str
) -> TensorSpec:
    return TensorSpec(name, pool, count, dtype, shape, "device", charged, source, component)


def _request_specs(deployment: Deployment, rows: int) -> tuple[TensorSpec, ...]:
    table = (rows, deployment.context_length + deployment.request_table_extra)
    tracking = counts.ping_pong_slots(deployment)
    specs = (
        _device("req_to_token", "requests", 1, "int32", table, False, _REQUESTS, "request_table"),
        TensorSpec("req_generation", "requests", 1, "int64", (rows,), "host", False, _REQUESTS, "request_table"),
        _device("req_index_to_mamba_index_mapping", "requests", 1, "int32", (rows,), False, _MAPS, "request_maps"),
    )
    if not tracking:
        return specs
    name = "req_index_to_mamba_ping_pong_track_buffer_mapping"
    return (*specs, _device(name, "requests", 1, "int64", (rows, tracking), False, _MAPS, "request_maps"))


def _state_specs(rank: Rank, sizes: PoolSizes) -> tuple[TensorSpec, ...]:
    deployment = rank.deployment
    layers = counts.state_layers(rank)
    slots = counts.effective_state_slots(deployment, sizes)
    conv, temporal = state_shapes(rank)
    conv_dtype, ssm_dtype = deployment.mamba_conv_dtype, deployment.mamba_ssm_dtype
    replay = counts.replay_ring(rank)

    def state(name: str, dtype: str, shape: tuple[int, ...], charged: bool, source: str) -> TensorSpec:
        component = {_STATE: "kda_state", _SNAPSHOT: "verify_snapshot", _RING: "replay_ring"}[source]
        return _device(name, "state", 1, dtype, (layers, *shape), charged, source, component)

    specs = [
        state("conv_state", conv_dtype, (slots + 1, *conv), True, _STATE),
        state("temporal_state", ssm_dtype, (slots + 1, *temporal), True, _STATE),
    ]
    if counts.snapshots_allocated(deployment):
        rows = (counts.request_rows(deployment, sizes), counts.draft_tokens(deployment))
        if not replay:
            specs.append(state("intermediate_ssm", ssm_dtype, (*rows, *temporal), True, _SNAPSHOT))
        specs.append(state("intermediate_conv_window", conv_dtype, (*rows, *conv), not replay, _SNAPSHOT))
    if replay:
        heads, values, keys = temporal
        ring = (slots + 1, heads, REPLAY_RECORDS)
        specs += [
            state("replayssm_d", conv_dtype, (*ring, values), True, _RING),
            state("replayssm_k", conv_dtype, (*ring, keys), True, _RING),
            state("replayssm_g", "float32", (*ring, keys), True, _RING),
            state("replayssm_rawv", conv_dtype, (*ring, values), True, _RING),
            state("replayssm_rawk", conv_dtype, (*ring, keys), True, _RING),
            state("replayssm_beta", "float32", ring, True, _RING),
        ]
    free = _device("mamba_allocator.free_slots", "allocator", 1, "int64", (slots,), False, _FREE_SLOTS, "free_lists")
    return (*specs, free)


def _token_specs(
    prefix: str,
    layers: int,
    indexed: int,
    rank: Rank,
    tokens: int,
    rows: int,
) -> tuple[TensorSpec, ...]:
    geometry, deployment, profile, _ = rank
    page = deployment.page_size
    dtype, row = latent_row_elements(rank)
    latent = (tokens + page, 1, row)
    index = ((tokens + page + 1) // page, index_page_elements(geometry, page, profile))

    def cache(
        name: str, pool: str, count: int, dtype: str, shape: tuple[int, ...], charged: bool, source: str
    ) -> TensorSpec:
        component = "pointer_tables" if name == "data_ptrs" else pool
        if prefix and charged:
            component = "draft_kv"
        return _device(prefix + name, "draft" if prefix else pool, count, dtype, shape, charged, source, component)

    specs = [
        cache("kv_buffer", "latent_kv", layers, dtype, latent, True, _LATENT),
        cache("index_k_buffer", "indexer", indexed, "uint8", index, True, _INDEX),
    ]
    if geometry.index_kpool > 1 and geometry.index_kpool_compress:
        # One row more than the request table has: the indexer's sentinel for an invalid request.
        width = geometry.index_kpool + counts.draft_tokens(deployment)
        tail = (rows + 1, width, geometry.index_head_dim)
        specs += [
            cache("compress_tail_k", "compress_tail", indexed, "bfloat16", tail, False, _TAIL),
            cache("compress_tail_score", "compress_tail", indexed, "bfloat16", tail, False, _TAIL),
        ]
    return (*specs, cache("data_ptrs", "latent_kv", 1, "uint64", (layers,), False, _LATENT))
