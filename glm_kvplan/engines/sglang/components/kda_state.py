"""KDA state: one convolution window and one recurrent state a slot in every linear-attention layer."""

from glm_kvplan.engines.component import Account, Ledger
from glm_kvplan.engines.tensor import DTYPE_BYTES
from glm_kvplan.model.geometry import Geometry

_ACCOUNT = Account(
    "kda_state",
    "KDA state",
    "state slot",
    "kda_layers * ((short_conv_kernel_size - 1) * 3 * linear_heads * linear_head_dim * conv_bytes"
    " + linear_heads * linear_head_dim * linear_head_dim * ssm_bytes)",
    "configs/mamba_utils.py:116-125, 324-369 at 0.5.21",
    charged=True,
    backed_up=True,
)


def conv_bytes(geometry: Geometry, dtype: str, shards: int) -> int:
    """Bytes of one slot's convolution window in one layer on one of `shards` ranks (147,456 unsharded in bf16)."""
    rows, channels = geometry.conv_state_shape
    return rows * (channels // shards) * DTYPE_BYTES[dtype]


def temporal_bytes(geometry: Geometry, dtype: str, shards: int) -> int:
    """Bytes of one slot's recurrent state in one layer on one of `shards` ranks (4,194,304 unsharded in fp32)."""
    heads, rows, columns = geometry.temporal_state_shape
    return heads // shards * rows * columns * DTYPE_BYTES[dtype]


def layer_bytes(geometry: Geometry, conv_dtype: str, ssm_dtype: str, shards: int) -> int:
    """Bytes of one slot in one layer on one of `shards` ranks."""
    return conv_bytes(geometry, conv_dtype, shards) + temporal_bytes(geometry, ssm_dtype, shards)


def ledger(geometry: Geometry, conv_dtype: str, ssm_dtype: str, shards: int, layers: int, slots: int) -> Ledger:
    """The ledger of `slots` state slots over `layers` KDA layers of one rank."""
    terms = (
        ("kda_layers", layers),
        ("short_conv_kernel_size", geometry.short_conv_kernel_size),
        ("linear_heads", geometry.linear_num_heads // shards),
        ("linear_head_dim", geometry.linear_head_dim),
        ("conv_bytes", DTYPE_BYTES[conv_dtype]),
        ("ssm_bytes", DTYPE_BYTES[ssm_dtype]),
    )
    return Ledger(_ACCOUNT, layers * layer_bytes(geometry, conv_dtype, ssm_dtype, shards), slots, terms)
