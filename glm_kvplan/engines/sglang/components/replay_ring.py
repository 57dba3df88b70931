"""Replay ring: the last draft inputs of a slot, kept so that a rejected draft is replayed instead of restored."""

from collections.abc import Iterator

from glm_kvplan.engines.ledger import Ledger
from glm_kvplan.engines.sglang.components import kda_state, pool_units
from glm_kvplan.engines.sglang.components.component import (
    STATE_POOL,
    Component,
    Location,
    Part,
    Printed,
    SegmentKind,
)
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.rank import Rank
from glm_kvplan.tensor import DTYPE_BYTES, TensorSpec

_SOURCE = "mem_cache/memory_pool.py:762-848 at 0.5.23"
_LETTERS = ("d", "k", "g", "rawv", "rawk", "beta")


# -- price -------------------------------------------------------------------------------------------------------------


def layer_bytes(rank: Rank) -> int:
    """Bytes of one slot's rings in one KDA layer: d, k, raw v, raw k in the conv dtype, gate and beta in fp32."""
    geometry, deployment, _, _ = rank
    head = 4 * geometry.linear_head_dim * DTYPE_BYTES[deployment.mamba_conv_dtype] + 4 + geometry.linear_head_dim * 4
    return geometry.linear_num_heads // deployment.linear_attn_tp_size * deployment.linear_replayssm_cache_len * head


def charge(rank: Rank) -> int:
    """Bytes the sizer charges for a slot, where verification replays."""
    return kda_state.share_of_largest(rank, layer_bytes(rank)) if pool_units.replay_ring(rank) else 0


def _price(rank: Rank) -> int:
    return rank.linear_layers * layer_bytes(rank) if pool_units.replay_ring(rank) else 0


def ledger(rank: Rank, sizes: PoolSizes) -> Ledger | None:
    if not pool_units.replay_ring(rank):
        return None
    geometry, deployment, _, stage = rank
    layers = geometry.linear_attention_in(stage)
    terms = (
        ("kda_layers", layers),
        ("linear_heads", geometry.linear_num_heads // deployment.linear_attn_tp_size),
        ("records", deployment.linear_replayssm_cache_len),
        ("linear_head_dim", geometry.linear_head_dim),
        ("conv_bytes", DTYPE_BYTES[deployment.mamba_conv_dtype]),
    )
    slots = pool_units.effective_state_slots(deployment, sizes)
    return Ledger(_ACCOUNT, _price(rank), slots, terms)


def difference(rank: Rank, sizes: PoolSizes) -> Iterator[Part]:
    if pool_units.replay_ring(rank):
        yield from kda_state.slot_difference(rank, sizes, layer_bytes(rank), charge(rank))


# -- tensors -----------------------------------------------------------------------------------------------------------


def tensors(rank: Rank, sizes: PoolSizes) -> tuple[TensorSpec, ...]:
    if not pool_units.replay_ring(rank):
        return ()
    _, (heads, values, keys) = kda_state.state_shapes(rank)
    slots = pool_units.effective_state_slots(rank.deployment, sizes) + 1
    ring = (pool_units.state_layers(rank), slots, heads, rank.deployment.linear_replayssm_cache_len)
    narrow, wide = rank.deployment.mamba_conv_dtype, "float32"
    kinds = (
        (narrow, (*ring, values)),
        (narrow, (*ring, keys)),
        (wide, (*ring, keys)),
        (narrow, (*ring, values)),
        (narrow, (*ring, keys)),
        (wide, ring),
    )
    return tuple(
        TensorSpec(f"replayssm_{letter}", "state", 1, dtype, shape, "device", True, _SOURCE, NAME)
        for letter, (dtype, shape) in zip(_LETTERS, kinds, strict=True)
    )


def locations(rank: Rank) -> Iterator[Location]:
    if pool_units.replay_ring(rank):
        yield Location(
            NAME,
            "Replay rings",
            STATE_POOL,
            tuple(f"replayssm_{letter}" for letter in _LETTERS),
            None,
            None,
            "the last steps of a running request, in its slot; a host copy of a slot holds the state alone",
            _SOURCE,
            "state slot",
            _price(rank),
            NAME,
        )


NAME = "replay_ring"

COMPONENT = Component(
    name=NAME,
    title="Replay ring",
    unit="state slot",
    segment=SegmentKind("replay rings", "the inputs from which a state is replayed", "state slot", "states"),
    charge=charge,
    price=_price,
    tensors=tensors,
    ledger=ledger,
    difference=difference,
    locations=locations,
    printed=tuple(Printed("replay_rings", letter, f"replayssm_{letter}") for letter in _LETTERS),
    host_share="state",
)

_ACCOUNT = COMPONENT.account(
    "kda_layers * linear_heads * records * (4 * linear_head_dim * conv_bytes + 4 + linear_head_dim * 4)", _SOURCE
)
