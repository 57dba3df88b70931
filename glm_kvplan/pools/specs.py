"""Every tensor the engine allocates for a deployment: the only description of an allocation in this package.

Shapes come from the geometry and the sizes, never from a ledger's bytes: that the two agree is a finding.
"""

from math import prod
from typing import NamedTuple

from glm_kvplan.deployment.deployment import DTYPE_BYTES


class TensorSpec(NamedTuple):
    """`count` equal tensors of one name in one pool. Bytes are those of the elements, without allocator rounding."""

    name: str
    pool: str
    count: int
    dtype: str
    shape: tuple[int, ...]
    place: str  # "device" or "host"
    charged: bool  # the engine's memory budget pays for it (perhaps not for every byte: see `attribution`)
    source: str

    @property
    def nbytes(self) -> int:
        """Bytes of all `count` tensors together."""
        return self.count * prod(self.shape) * DTYPE_BYTES[self.dtype]
