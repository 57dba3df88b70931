"""KDA state: one convolution window and one recurrent state a slot in every linear-attention layer."""

from collections.abc import Iterator
from functools import lru_cache

from glm_kvplan.engines.ledger import Ledger
from glm_kvplan.engines.sglang.components import pool_units
from glm_kvplan.engines.sglang.components.component import (
    SLAB,
    STATE_POOL,
    Component,
    Location,
    Part,
    Printed,
    SegmentKind,
    no_copy,
    tree_part,
)
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.pipeline import stages_of
from glm_kvplan.engines.sglang.rank import Rank
from glm_kvplan.model.geometry import Geometry
from glm_kvplan.tensor import DTYPE_BYTES, TensorSpec

_BUFFER_SOURCE = "mem_cache/memory_pool.py:722-753 at 0.5.23"


# -- price -------------------------------------------------------------------------------------------------------------


def conv_bytes(geometry: Geometry, dtype: str, shards: int) -> int:
    """Bytes of one slot's convolution window in one layer on one of `shards` ranks (147,456 unsharded in bf16)."""
    rows, channels = geometry.conv_state_shape
    return rows * (channels // shards) * DTYPE_BYTES[dtype]


def temporal_bytes(geometry: Geometry, dtype: str, shards: int) -> int:
    """Bytes of one slot's recurrent state in one layer on one of `shards` ranks (4,194,304 unsharded in fp32)."""
    heads, rows, columns = geometry.temporal_state_shape
    return heads // shards * rows * columns * DTYPE_BYTES[dtype]


def layer_bytes(rank: Rank) -> int:
    """Bytes of one slot in one layer on one rank."""
    geometry, deployment, _, _ = rank
    return _layer_bytes(
        geometry, deployment.mamba_conv_dtype, deployment.mamba_ssm_dtype, deployment.linear_attn_tp_size
    )


@lru_cache(maxsize=256)
def _layer_bytes(geometry: Geometry, conv_dtype: str, ssm_dtype: str, shards: int) -> int:
    return conv_bytes(geometry, conv_dtype, shards) + temporal_bytes(geometry, ssm_dtype, shards)


def charge(rank: Rank) -> int:
    """Bytes the sizer charges for a slot."""
    return share_of_largest(rank, layer_bytes(rank))


def share_of_largest(rank: Rank, layer: int) -> int:
    """`layer` bytes over the checkpoint's KDA layers, scaled to the stage that holds most of them.

    The product and its rounding are the engine's. Source: mem_cache/kv_cache_configurator.py:3229-3409 at 0.5.23.
    """
    geometry, deployment, _, _ = rank
    linear = len(geometry.linear_attention_layers)
    most = linear if deployment.pp_size == 1 else _most_layers(geometry, stages_of(geometry, deployment))
    return int(linear * layer * (most / max(linear, 1)))


@lru_cache(maxsize=256)
def _most_layers(geometry: Geometry, stages: tuple[range, ...]) -> int:
    """KDA layers of the stage that holds most of them."""
    return max(geometry.linear_attention_in(stage) for stage in stages)


def _price(rank: Rank) -> int:
    return rank.linear_layers * layer_bytes(rank)


def ledger(rank: Rank, sizes: PoolSizes) -> Ledger:
    geometry, deployment, _, stage = rank
    layers = geometry.linear_attention_in(stage)
    terms = (
        ("kda_layers", layers),
        ("short_conv_kernel_size", geometry.short_conv_kernel_size),
        ("linear_heads", geometry.linear_num_heads // deployment.linear_attn_tp_size),
        ("linear_head_dim", geometry.linear_head_dim),
        ("conv_bytes", DTYPE_BYTES[deployment.mamba_conv_dtype]),
        ("ssm_bytes", DTYPE_BYTES[deployment.mamba_ssm_dtype]),
    )
    slots = pool_units.effective_state_slots(deployment, sizes)
    return Ledger(_ACCOUNT, _price(rank), slots, terms)


def difference(rank: Rank, sizes: PoolSizes) -> Iterator[Part]:
    return slot_difference(rank, sizes, layer_bytes(rank), charge(rank))


def slot_difference(rank: Rank, sizes: PoolSizes, layer: int, paid: int) -> Iterator[Part]:
    """The parts of what lies in the slots' layers: `layer` bytes each, `paid` for a slot."""
    layers, linear = pool_units.state_layers(rank), rank.linear_layers
    slots = sizes.state_slots + 1
    raised = pool_units.effective_state_slots(rank.deployment, sizes) - sizes.state_slots
    yield Part("draft layer states", (layers - linear) * slots * layer, "a slab for the draft layer, never used", SLAB)
    yield Part("pipeline state share", (linear * layer - paid) * slots, "each stage pays for the largest one")
    yield Part("PD decode state slots", layers * raised * layer, "slots raised to what the requests can need")


# -- tensors -----------------------------------------------------------------------------------------------------------


def state_shapes(rank: Rank) -> tuple[tuple[int, int], tuple[int, int, int]]:
    """One slot of one KDA layer on one rank: the convolution window's shape and the recurrent state's.

    Source: configs/mamba_utils.py:324-369 at 0.5.23.
    """
    shards = rank.deployment.linear_attn_tp_size
    taps, channels = rank.geometry.conv_state_shape
    heads, values, keys = rank.geometry.temporal_state_shape
    return (taps, channels // shards), (heads // shards, values, keys)


def tensors(rank: Rank, sizes: PoolSizes) -> tuple[TensorSpec, ...]:
    deployment = rank.deployment
    lead = pool_units.state_layers(rank), pool_units.effective_state_slots(deployment, sizes) + 1
    conv, temporal = state_shapes(rank)
    convs, states = (*lead, *conv), (*lead, *temporal)
    return (
        TensorSpec("conv_state", "state", 1, deployment.mamba_conv_dtype, convs, "device", True, _BUFFER_SOURCE, NAME),
        TensorSpec(
            "temporal_state", "state", 1, deployment.mamba_ssm_dtype, states, "device", True, _BUFFER_SOURCE, NAME
        ),
    )


# -- copies ------------------------------------------------------------------------------------------------------------


def locations(rank: Rank) -> Iterator[Location]:
    off = no_copy(rank.deployment)
    yield Location(
        NAME,
        COMPONENT.title,
        STATE_POOL,
        ("conv_state", "temporal_state"),
        tree_part(rank.deployment, "MAMBA"),
        None if off else "MAMBA",
        off or "one slot a checkpoint; a hit loads exactly one",
        "mem_cache/pool_host/mamba.py:75-174 at 0.5.23",
        "state slot",
        _price(rank),
        NAME,
    )


NAME = "kda_state"

COMPONENT = Component(
    name=NAME,
    title="KDA state",
    unit="state slot",
    segment=SegmentKind(
        "state slots",
        "one recurrent state and convolution window a slot and KDA layer, and one padding slot",
        "state slot",
        "states",
    ),
    charge=charge,
    price=_price,
    tensors=tensors,
    ledger=ledger,
    difference=difference,
    locations=locations,
    printed=(Printed("state_pool", "conv", "conv_state"), Printed("state_pool", "ssm", "temporal_state")),
    host_share="state",
)

_ACCOUNT = COMPONENT.account(
    "kda_layers * ((short_conv_kernel_size - 1) * 3 * linear_heads * linear_head_dim * conv_bytes"
    " + linear_heads * linear_head_dim * linear_head_dim * ssm_bytes)",
    "configs/mamba_utils.py:116-125, 324-369 at 0.5.23",
    backed_up=True,
)
