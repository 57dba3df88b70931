"""The map of a workload's pools alone: what `estimate` knows without a word on weights."""

from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.rank import Rank
from glm_kvplan.engines.sglang.sizing.memory_map import MemoryMap, Segment, pool_segments

REST = "everything else"


def pool_map(plan: Plan, rank: Rank, sizes: PoolSizes, staging_bytes: int = 0) -> MemoryMap:
    """The pools of one rank of a plan. Where the user named a GPU, against its whole memory: the last
    segment is then what weights, graphs and all else may take (negative: the pools alone do not fit).
    """
    segments = pool_segments(rank, sizes, staging_bytes)
    taken = sum(segment.nbytes for segment in segments)
    if plan.gpu_assumed:
        return MemoryMap(taken, segments)
    total = plan.gpu.memory_mib << 20
    rest = Segment(REST, total - taken, False, "derived", "weights, CUDA graphs, activations, and what stays free")
    return MemoryMap(total, (*segments, rest))
