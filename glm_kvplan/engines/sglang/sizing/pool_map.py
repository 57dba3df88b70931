"""A rank's memory as segments: its pools, alone what `estimate` knows without a word on weights."""

from typing import Literal, NamedTuple

from glm_kvplan.certainty import Certainty
from glm_kvplan.engines.sglang import components
from glm_kvplan.engines.sglang.components import hicache_staging
from glm_kvplan.engines.sglang.components.component import LedgerName, SegmentKind
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.components.pool_units import Unit
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.rank import Rank
from glm_kvplan.engines.sglang.sizing.attribution import component_differences

REST = "everything else"
RETURNED = "draft embedding and head"


class Segment(NamedTuple):
    """`charged`: the engine's budget pays for it. Certainty: exact (tensor shapes), derived, or estimated.

    `components` are the pools in it, `unit` is what their size follows, and `ledger` which of the three they belong
    to (latent, index, states); all are empty for what is no pool.
    """

    name: str
    nbytes: int
    charged: bool
    certainty: Certainty
    note: str
    unit: Unit | Literal[""] = ""
    components: tuple[str, ...] = ()
    ledger: LedgerName = ""


class MemoryMap(NamedTuple):
    """Segments that add up to `total` exactly; the last one is what stays free (negative where nothing does).

    `unallocated` is what the driver calls free and the engine prints after its pools.
    """

    total: int
    segments: tuple[Segment, ...]

    @property
    def unallocated(self) -> int:
        """Bytes that stay free once the pools exist: for graphs, activations and everything else."""
        return self.segments[-1].nbytes

    @property
    def usable(self) -> int:
        """Bytes serving can take: the free ones, and the draft's dropped embedding and head in torch's cache."""
        return self.unallocated + sum(segment.nbytes for segment in self.segments if segment.name == RETURNED)

    @property
    def pools(self) -> int:
        """Bytes of all pools, charged or not."""
        return sum(segment.nbytes for segment in self.segments if segment.components)

    @property
    def uncharged(self) -> int:
        """Bytes the pools take without the budget knowing: out of the part that was to stay free."""
        return sum(segment.nbytes for segment in self.segments if segment.components and not segment.charged)


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
        Segment(name, pool.nbytes, pool.charged, "exact", note, unit, tuple(pool.components), ledger)
        for (name, note, unit, ledger), pool in pools.items()
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
