"""MLA latent KV: one compressed row a token in every sparse full-attention layer."""

from collections.abc import Iterator

from glm_kvplan.engines.ledger import Ledger
from glm_kvplan.engines.sglang.components.component import (
    FULL_POOL,
    KV_SPLIT,
    PADDING,
    Component,
    Location,
    Part,
    Printed,
    SegmentKind,
    no_copy,
    tree_part,
)
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.deployment import KvLayout
from glm_kvplan.engines.sglang.profile import EngineProfile
from glm_kvplan.engines.sglang.rank import Rank
from glm_kvplan.model.geometry import QUANT_BLOCK, Geometry
from glm_kvplan.tensor import DTYPE_BYTES, TensorSpec

SCALE_BYTES = 4  # fp32, one for QUANT_BLOCK elements
ROPE_BYTES = 2  # the RoPE part of a scaled row stays bf16
PADDED_ROPE = 64  # elements of RoPE that some builds keep though the model has none

# What a boot log calls the dtype of a row layout.
PRINTED_DTYPES = {
    "bf16": ("bfloat16",),
    "fp8_scaled": ("float8_e4m3fn",),
    "fp8_padded": ("float8_e4m3fn",),
    "fp8_raw": ("float8_e4m3fn", "float8_e4m3fnuz"),
}

BUFFER_SOURCE = "mem_cache/memory_pool.py:4864-4871 at 0.5.23"
PADDING_REASON = "writes of padded tokens land in page 0"


# -- price -------------------------------------------------------------------------------------------------------------


def row_bytes(geometry: Geometry, layout: KvLayout, profile: EngineProfile) -> int:
    """Bytes of one token's row in one full-attention layer: 1024 (bf16), 528 (scaled), 512 (raw) or 656 (padded)."""
    dtype, elements = row_elements(geometry, layout, profile)
    return elements * DTYPE_BYTES[dtype]


def row_elements(geometry: Geometry, layout: KvLayout, profile: EngineProfile) -> tuple[str, int]:
    """Dtype and elements of that row.

    Source: mem_cache/kv_cache_configurator.py:3412-3475 at 0.5.23.
    """
    if layout == "bf16":
        return "bfloat16", geometry.latent_width
    if layout == "fp8_raw":
        return "uint8", geometry.latent_width
    scales = geometry.kv_lora_rank // QUANT_BLOCK * SCALE_BYTES
    if layout == "fp8_padded":
        return "uint8", geometry.kv_lora_rank + scales + PADDED_ROPE * ROPE_BYTES
    if profile.scaled_row_bytes is not None:
        return "uint8", profile.scaled_row_bytes
    return "uint8", geometry.kv_lora_rank + scales + geometry.qk_rope_head_dim * ROPE_BYTES


def charge(rank: Rank) -> int:
    """Bytes the sizer charges for a token: its rows in the rank's full-attention layers."""
    return rank.full_layers * row_bytes(rank.geometry, rank.deployment.kv_layout, rank.profile)


def ledger(rank: Rank, sizes: PoolSizes) -> Ledger:
    """The rows of the pool's tokens; a profile may fix the scaled row's width, and the formula then says so."""
    geometry, layout = rank.geometry, rank.deployment.kv_layout
    layers, price = rank.full_layers, charge(rank)
    terms: tuple[tuple[str, int], ...] = (
        ("full_attention_layers", layers),
        ("kv_lora_rank", geometry.kv_lora_rank),
        ("qk_rope_head_dim", geometry.qk_rope_head_dim),
    )
    if layout == "fp8_scaled" and rank.profile.scaled_row_bytes is not None:
        terms = (("full_attention_layers", layers), ("scaled_row_bytes", rank.profile.scaled_row_bytes))
        return Ledger(_FROM_PROFILE, price, sizes.tokens, terms)
    return Ledger(_ACCOUNTS[layout], price, sizes.tokens, terms)


def difference(rank: Rank, sizes: PoolSizes) -> Iterator[Part]:
    yield Part("padding page", rank.deployment.page_size * charge(rank), PADDING_REASON, PADDING)


# -- tensors -----------------------------------------------------------------------------------------------------------


def buffer_shape(rank: Rank, sizes: PoolSizes) -> tuple[str, tuple[int, ...]]:
    """Dtype and shape of one layer's buffer: the pool's tokens and one page more."""
    dtype, row = row_elements(rank.geometry, rank.deployment.kv_layout, rank.profile)
    return dtype, (sizes.tokens + rank.deployment.page_size, 1, row)


def tensors(rank: Rank, sizes: PoolSizes) -> tuple[TensorSpec, ...]:
    layers, (dtype, shape) = rank.full_layers, buffer_shape(rank, sizes)
    return (TensorSpec("kv_buffer", NAME, layers, dtype, shape, "device", True, BUFFER_SOURCE, NAME),)


# -- copies ------------------------------------------------------------------------------------------------------------


def _copied(rank: Rank) -> str:
    deployment = rank.deployment
    whole = rank.profile.host_row_is_device_row or deployment.hicache_mem_layout == KV_SPLIT
    if deployment.row_scales and not whole:
        return "stored without its scales: the host row is narrower than the device row"
    return "whole pages, rows as wide as on the device"


def locations(rank: Rank) -> Iterator[Location]:
    off = no_copy(rank.deployment)
    yield Location(
        NAME,
        COMPONENT.title,
        FULL_POOL,
        ("kv_buffer",),
        tree_part(rank.deployment, "FULL"),
        None if off else "KV",
        off or _copied(rank),
        "mem_cache/hybrid_cache/hybrid_pool_assembler.py:1278-1412 at 0.5.23",
        "token",
        charge(rank),
        NAME,
    )


NAME = "latent_kv"

COMPONENT = Component(
    name=NAME,
    title="MLA latent KV",
    unit="token",
    segment=SegmentKind(
        "latent KV", "one row a token and full-attention layer, whole on every rank", "token", "latent"
    ),
    charge=charge,
    tensors=tensors,
    ledger=ledger,
    difference=difference,
    locations=locations,
    printed=(Printed("token_pool", "gib", "kv_buffer"),),
    host_share="kv",
)

_SOURCE = "mem_cache/kv_cache_configurator.py:3412-3475 at 0.5.23"
_ACCOUNTS = {
    layout: COMPONENT.account(f"full_attention_layers * {row}", _SOURCE, backed_up=True)
    for layout, row in (
        ("bf16", "(kv_lora_rank + qk_rope_head_dim) * 2"),
        ("fp8_raw", "(kv_lora_rank + qk_rope_head_dim)"),
        ("fp8_padded", "(kv_lora_rank + kv_lora_rank // 128 * 4 + 64 * 2)"),
        ("fp8_scaled", "(kv_lora_rank + kv_lora_rank // 128 * 4 + qk_rope_head_dim * 2)"),
    )
}
_FROM_PROFILE = COMPONENT.account("full_attention_layers * scaled_row_bytes", _SOURCE, backed_up=True)
