"""Decode ring: the last inputs of a slot from which decoding replays (--enable-linear-replayssm); never charged.

The engine takes the flag without a radix cache only; its sizing does not know it.
"""

from collections.abc import Iterator

from glm_kvplan.engines.ledger import Ledger
from glm_kvplan.engines.sglang.components import kda_state, pool_units
from glm_kvplan.engines.sglang.components.component import STATE_POOL, Component, Location, Part, SegmentKind
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.rank import Rank
from glm_kvplan.tensor import DTYPE_BYTES, TensorSpec

CURSOR_BYTES = 4  # int32: where a slot's ring is written next, once for all layers

_SOURCE = "mem_cache/memory_pool.py:762-848, 1034 at 0.5.23"


# -- price -------------------------------------------------------------------------------------------------------------


def layer_bytes(rank: Rank) -> int:
    """Bytes of one slot's rings in one KDA layer: d and k in the state's dtype, the gate in fp32."""
    geometry, deployment, _, _ = rank
    head = geometry.linear_head_dim * (2 * DTYPE_BYTES[deployment.mamba_ssm_dtype] + 4)
    return geometry.linear_num_heads // deployment.linear_attn_tp_size * deployment.linear_replayssm_cache_len * head


def _price(rank: Rank) -> int:
    return _slot_bytes(rank) if pool_units.decode_ring(rank.deployment) else 0


def _slot_bytes(rank: Rank) -> int:
    return pool_units.state_layers(rank) * layer_bytes(rank) + CURSOR_BYTES


def ledger(rank: Rank, sizes: PoolSizes) -> Ledger | None:
    if not pool_units.decode_ring(rank.deployment):
        return None
    geometry, deployment, _, _ = rank
    terms = (
        ("state_layers", pool_units.state_layers(rank)),
        ("linear_heads", geometry.linear_num_heads // deployment.linear_attn_tp_size),
        ("records", deployment.linear_replayssm_cache_len),
        ("linear_head_dim", geometry.linear_head_dim),
        ("ssm_bytes", DTYPE_BYTES[deployment.mamba_ssm_dtype]),
    )
    return Ledger(_ACCOUNT, _slot_bytes(rank), pool_units.effective_state_slots(deployment, sizes), terms)


def difference(rank: Rank, sizes: PoolSizes) -> Iterator[Part]:
    if pool_units.decode_ring(rank.deployment):
        slots = pool_units.effective_state_slots(rank.deployment, sizes) + 1
        yield Part("decode rings", slots * _slot_bytes(rank), "replay rings of decoding are never charged")


# -- tensors -----------------------------------------------------------------------------------------------------------


def tensors(rank: Rank, sizes: PoolSizes) -> tuple[TensorSpec, ...]:
    deployment = rank.deployment
    if not pool_units.decode_ring(deployment):
        return ()
    _, (heads, values, keys) = kda_state.state_shapes(rank)
    slots = pool_units.effective_state_slots(deployment, sizes) + 1
    ring = (pool_units.state_layers(rank), slots, heads, deployment.linear_replayssm_cache_len)
    wide = deployment.mamba_ssm_dtype
    kinds = (("d", wide, (*ring, values)), ("k", wide, (*ring, keys)), ("g", "float32", (*ring, keys)))
    rings = tuple(
        TensorSpec(f"replayssm_{letter}", "state", 1, dtype, shape, "device", False, _SOURCE, NAME)
        for letter, dtype, shape in kinds
    )
    return (*rings, TensorSpec("replayssm_write_pos", "state", 1, "int32", (slots,), "device", False, _SOURCE, NAME))


def locations(rank: Rank) -> Iterator[Location]:
    if pool_units.decode_ring(rank.deployment):
        yield Location(
            NAME,
            "Decode rings",
            STATE_POOL,
            ("replayssm_d", "replayssm_k", "replayssm_g", "replayssm_write_pos"),
            None,
            None,
            "the last steps of a running request, in its slot",
            _SOURCE,
            "state slot",
            _slot_bytes(rank),
            NAME,
        )


NAME = "decode_ring"

COMPONENT = Component(
    name=NAME,
    title="Decode ring",
    unit="state slot",
    segment=SegmentKind(
        "decode rings", "the inputs from which decoding replays, never charged", "state slot", "states"
    ),
    price=_price,
    tensors=tensors,
    ledger=ledger,
    difference=difference,
    locations=locations,
)

_ACCOUNT = COMPONENT.account(
    "state_layers * linear_heads * records * linear_head_dim * (2 * ssm_bytes + 4) + 4", _SOURCE
)
