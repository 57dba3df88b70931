"""One rank's HBM from top to bottom: what sits there before the pools, each pool, and what stays free."""

from typing import NamedTuple

from glm_kvplan.engines.sglang import components
from glm_kvplan.engines.sglang.components import hicache_staging
from glm_kvplan.engines.sglang.components.component import SegmentKind
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.rank import Rank
from glm_kvplan.engines.sglang.sizing.attribution import component_differences
from glm_kvplan.memory.budget import DRAFT, TARGET, MemoryBudget
from glm_kvplan.units import GIB

FREE = "free"
RETURNED = "draft embedding and head"


class Segment(NamedTuple):
    """`charged`: the engine's budget pays for it. Certainty: exact (tensor shapes), derived, or estimated.

    `components` are the pools in it, and `unit` is what their size follows; both are empty for what is no pool.
    """

    name: str
    nbytes: int
    charged: bool
    certainty: str
    note: str
    unit: str = ""
    components: tuple[str, ...] = ()


class MemoryMap(NamedTuple):
    """Segments that add up to `total` exactly; the last one is what stays free (negative where nothing does).

    `free` is what the driver calls free and the engine prints after its pools.
    """

    total: int
    segments: tuple[Segment, ...]

    @property
    def free(self) -> int:
        """Bytes that stay free once the pools exist: for graphs, activations and everything else."""
        return self.segments[-1].nbytes

    @property
    def usable(self) -> int:
        """Bytes serving can take: the free ones, and the draft's dropped embedding and head in torch's cache."""
        return self.free + sum(segment.nbytes for segment in self.segments if segment.name == RETURNED)

    @property
    def pools(self) -> int:
        """Bytes of all pools, charged or not."""
        return sum(segment.nbytes for segment in self.segments if segment.components)

    @property
    def uncharged(self) -> int:
        """Bytes the pools take without the budget knowing: out of the part that was to stay free."""
        return sum(segment.nbytes for segment in self.segments if segment.components and not segment.charged)


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
    free = total - sum(segment.nbytes for segment in segments)
    note = "for CUDA graphs, activations, the indexer's logits and images"
    return MemoryMap(total, (*segments, Segment(FREE, free, False, budget.reading, note)))


def pool_segments(rank: Rank, sizes: PoolSizes, staging_bytes: int = 0) -> tuple[Segment, ...]:
    """One rank's pools, those that the budget pays for first: a segment for every kind that takes a byte.

    A component's bytes are its segment's but for the parts that belong to another: padding, the draft layer's slab.
    """
    pools: dict[SegmentKind, _Pool] = {}
    for component, found in zip(components.COMPONENTS, component_differences(rank, sizes), strict=True):
        allocated = found.allocated + (staging_bytes if component is hicache_staging.COMPONENT else 0)
        for part in found.parts:
            if part.segment is not None:
                allocated -= part.nbytes
                pools.setdefault(part.segment, _Pool()).add(component.name, part.nbytes)
        if allocated:
            pool = pools.setdefault(component.segment, _Pool())
            pool.add(component.name, allocated)
            pool.charged = pool.charged or found.charged > 0
    segments = [
        Segment(kind.name, pool.nbytes, pool.charged, "exact", kind.note, kind.unit, tuple(pool.components))
        for kind, pool in pools.items()
    ]
    return tuple(sorted(segments, key=lambda segment: not segment.charged))


class _Pool:
    """A segment while its components are added up."""

    def __init__(self) -> None:
        self.nbytes, self.charged = 0, False
        self.components: list[str] = []

    def add(self, component: str, nbytes: int) -> None:
        self.nbytes += nbytes
        self.components.append(component)


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


def _certainty(how: str) -> str:
    return "estimated" if how == "estimated" else "derived"
