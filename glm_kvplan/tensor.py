"""One tensor an engine allocates: name, shape, dtype, where it lies, who pays for it, and which component it is of."""

from collections.abc import Iterable
from math import prod
from typing import NamedTuple

DTYPE_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2, "uint8": 1, "int8": 1, "int32": 4, "int64": 8, "uint64": 8}


class TensorSpec(NamedTuple):
    """`count` equal tensors of one name in one pool. Bytes are those of the elements, without allocator rounding."""

    name: str
    pool: str
    count: int  # type: ignore[assignment]  # not tuple.count
    dtype: str
    shape: tuple[int, ...]
    place: str  # "device" or "host"
    charged: bool  # the engine's memory budget pays for it (perhaps not for every byte: see `attribution`)
    source: str
    component: str  # the kind of memory it belongs to, by name

    @property
    def nbytes(self) -> int:
        """Bytes of all `count` tensors together."""
        return self.count * prod(self.shape) * DTYPE_BYTES[self.dtype]


def device_bytes(specs: Iterable[TensorSpec]) -> int:
    """Bytes of the specs that lie on the device."""
    total = 0
    for spec in specs:  # as `nbytes`, at a third of its time: sweeps ask a great deal
        if spec[5] == "device":
            total += spec[2] * prod(spec[4]) * DTYPE_BYTES[spec[3]]
    return total
