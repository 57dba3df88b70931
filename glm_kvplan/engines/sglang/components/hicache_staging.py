"""HiCache staging: buffers on the GPU through which pages travel to host memory.

They follow the host pools (`host_pools`), which are sized after the device's, so the map is told their bytes.
"""

from glm_kvplan.engines.sglang.components.component import Component, SegmentKind
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.rank import Rank
from glm_kvplan.tensor import TensorSpec


def tensors(rank: Rank, sizes: PoolSizes) -> tuple[TensorSpec, ...]:
    return ()


COMPONENT = Component(
    name="hicache_staging",
    title="HiCache staging",
    unit="rank",
    segment=SegmentKind("HiCache staging", "buffers through which pages travel to host memory", "rank"),
    tensors=tensors,
)
