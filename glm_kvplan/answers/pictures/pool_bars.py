"""The map of a workload's pools alone: what `estimate` knows without a word on weights."""

from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.rank import Rank
from glm_kvplan.engines.sglang.sizing.memory_map import (
    CHARGED,
    NOTES,
    STAGING,
    UNCHARGED,
    MemoryMap,
    Segment,
    pool_bytes,
)

REST = "everything else"


def pool_map(plan: Plan, rank: Rank, sizes: PoolSizes, staging_bytes: int = 0) -> MemoryMap:
    """The pools of one rank of a plan. Where the user named a GPU, against its whole memory: the last
    segment is then what weights, graphs and all else may take (negative: the pools alone do not fit).
    """
    pools = pool_bytes(rank, sizes)
    pools[STAGING] = staging_bytes
    segments = [
        Segment(name, pools[name], name in CHARGED, "exact", NOTES[name])
        for name in (*CHARGED, *UNCHARGED)
        if pools[name]
    ]
    taken = sum(segment.nbytes for segment in segments)
    if plan.gpu_assumed:
        return MemoryMap(taken, tuple(segments))
    total = plan.gpu.memory_mib << 20
    rest = Segment(REST, total - taken, False, "derived", "weights, CUDA graphs, activations, and what stays free")
    return MemoryMap(total, (*segments, rest))
