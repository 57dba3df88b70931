"""Replay ring: the last draft inputs of a slot, kept so that a rejected draft is replayed instead of restored."""

from glm_kvplan.engines.component import Account, Ledger
from glm_kvplan.engines.tensor import DTYPE_BYTES
from glm_kvplan.model.geometry import Geometry

RECORD_LENGTH = 16  # draft positions a ring holds (mem_cache/memory_pool.py:656-742 at 0.5.21)

_ACCOUNT = Account(
    "replay_ring",
    "Replay ring",
    "state slot",
    "kda_layers * linear_heads * 16 * (4 * linear_head_dim * conv_bytes + 4 + linear_head_dim * 4)",
    "mem_cache/memory_pool.py:656-742 at 0.5.21",
    charged=True,
    backed_up=False,
)


def layer_bytes(geometry: Geometry, conv_dtype: str, shards: int) -> int:
    """Bytes of one slot's rings in one KDA layer: d, k, raw v, raw k in the conv dtype, gate and beta in fp32."""
    head = 4 * geometry.linear_head_dim * DTYPE_BYTES[conv_dtype] + 4 + geometry.linear_head_dim * 4
    return geometry.linear_num_heads // shards * RECORD_LENGTH * head


def ledger(geometry: Geometry, conv_dtype: str, shards: int, layers: int, slots: int) -> Ledger:
    """The ledger of `slots` state slots over `layers` KDA layers of one rank."""
    terms = (
        ("kda_layers", layers),
        ("linear_heads", geometry.linear_num_heads // shards),
        ("linear_head_dim", geometry.linear_head_dim),
        ("conv_bytes", DTYPE_BYTES[conv_dtype]),
    )
    return Ledger(_ACCOUNT, layers * layer_bytes(geometry, conv_dtype, shards), slots, terms)
