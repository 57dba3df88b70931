"""One rank's HBM from top to bottom: what sits there before the pools, each pool, and what stays free."""

from glm_kvplan.certainty import Certainty, How
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.rank import Rank
from glm_kvplan.engines.sglang.sizing.pool_map import RETURNED, pool_segments
from glm_kvplan.engines.sglang.sizing.pool_map import MemoryMap as MemoryMap
from glm_kvplan.engines.sglang.sizing.pool_map import Segment as Segment
from glm_kvplan.memory.budget import DRAFT, TARGET, MemoryBudget
from glm_kvplan.units import GIB

FREE = "free"


def memory_map(rank: Rank, sizes: PoolSizes, budget: MemoryBudget, staging_bytes: int = 0) -> MemoryMap:
    """The map of one rank with pools of `sizes`.

    `staging_bytes` are HiCache's buffers on the GPU. The weights are those of the rank that decides the sizes. The
    total is the card's own, or the memory free before the load where no card is named. The pools' bytes are exact,
    the rest as sure as `budget`.
    """
    pre = int(budget.pre_gib * GIB)
    total = budget.total_bytes
    before: list[Segment] = []
    if total != pre:
        before.append(Segment("context and communication", total - pre, False, budget.reading, "before the load"))
    before += _weights(budget, pre)
    segments = [*before, *pool_segments(rank, sizes, staging_bytes)]
    unallocated = total - sum(segment.nbytes for segment in segments)
    note = "for CUDA graphs, activations, the indexer's logits and images"
    return MemoryMap(total, (*segments, Segment(FREE, unallocated, False, budget.reading, note)))


def _weights(budget: MemoryBudget, pre: int) -> list[Segment]:
    """What loading took between the two readings: target, draft and the rest, in that order."""
    taken = pre - int(budget.available_gib * GIB)
    how = {part.name: part.how for part in budget.parts}
    if budget.weights_gib is None:
        note = "everything between the two readings: target, draft and what loading left"
        return [Segment("weights", taken, True, "derived", note)]
    target, draft = int(budget.weights_gib * GIB), int((budget.draft_weights_gib or 0.0) * GIB)
    returned = int(budget.returned_gib * GIB)
    rest = taken - target - draft
    if rest < 0:  # the readings say less than the estimate: they win
        target, rest = target + rest, 0
    segments = [Segment("weights", target, True, _certainty(how[TARGET]), "target model")]
    if draft:
        sure = _certainty(how[DRAFT])
        segments.append(Segment("draft weights", draft - returned, True, sure, "draft model"))
        if returned:
            note = "dropped for the target's once the pools exist: free to torch, not to the driver"
            segments.append(Segment(RETURNED, returned, True, "estimated", note))
    if rest:
        note = "allocator holes and what loading left behind"
        segments.append(Segment("left by loading", rest, True, budget.reading, note))
    return segments


def _certainty(how: How) -> Certainty:
    return "estimated" if how == "estimated" else "derived"
