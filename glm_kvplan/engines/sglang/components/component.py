"""The record that every file of this folder fills in: all that is true of one kind of memory."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple

from glm_kvplan.engines.ledger import Account, Ledger
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.components.pool_units import Unit, charged_units
from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.engines.sglang.rank import Rank
from glm_kvplan.tensor import TensorSpec

FULL_POOL = "HybridLinearKVPool.full_kv_pool"
STATE_POOL = "HybridLinearKVPool.mamba_pool"  # the same object as HybridReqToTokenPool.mamba_pool, which builds it
DRAFT_POOL = "draft DSATokenToKVPool"
DRAFT = "draft"  # `TensorSpec.pool` of all that the draft worker allocates
KV_SPLIT = "page_first_kv_split"  # the host memory layout that keeps index keys beside the latent rows
LedgerName = Literal["latent", "index", "states", ""]  # of the three ledgers; "": none of them


class SegmentKind(NamedTuple):
    """A bar of the memory map. Components that name the same one are drawn as one; `unit` is what its size follows,
    `ledger` which of the three it belongs to, and has the colour of.
    """

    name: str
    note: str
    unit: Unit
    ledger: LedgerName = ""


PADDING = SegmentKind("padding page", "one page more than the pool's tokens, in every layer", "rank")
SLAB = SegmentKind(
    "draft-layer state slab", "a state slab for the draft layer, which has no state", "state slot", "states"
)


class Part(NamedTuple):
    """One named share of the difference. Positive: allocated, not charged. Negative: charged, not allocated."""

    name: str
    nbytes: int
    reason: str
    segment: SegmentKind | None = None  # where the memory map draws it, if not with its component


class Printed(NamedTuple):
    """A number of a boot log: the message (as in `boot_log.lines`), the number in it, and a tensor it counts."""

    message: Literal["token_pool", "state_pool", "replay_rings"]
    number: str
    tensor: str


class Location(NamedTuple):
    """One kind of object. Pools carry the engine's names; `host_pool` None means that DRAM never holds a copy."""

    name: str
    title: str
    hbm_pool: str
    tensors: tuple[str, ...]  # as in the tensor specs
    tree: Literal["FULL", "MAMBA"] | None  # the radix-tree component whose indices address it
    host_pool: Literal["KV", "MAMBA", "INDEXER", "DRAFT"] | None
    reason: str  # how the copy is kept, or why there is none
    source: str
    unit: Unit
    bytes_per_unit: int  # one rank's, over its layers
    component: str


def _nothing(rank: Rank) -> tuple[Location, ...]:
    return ()


def _no_ledger(rank: Rank, sizes: PoolSizes) -> Ledger | None:
    return None


def _no_difference(rank: Rank, sizes: PoolSizes) -> tuple[Part, ...]:
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """One kind of memory of one rank.

    Price and tensors are two computations: `ledger`, `charge` and `difference` never look at a shape, `tensors` never
    at a price. That allocated bytes are charged bytes and the parts of `difference`, to the byte, is what
    `sizing.attribution` proves of every component.
    """

    name: str
    title: str
    unit: Unit
    segment: SegmentKind
    # The tensors of a rank; those without an element are left out by whoever asks.
    tensors: Callable[[Rank, PoolSizes], Iterable[TensorSpec]]
    # What a unit takes on this rank and how many units there are; None where the deployment has none of it.
    ledger: Callable[[Rank, PoolSizes], Ledger | None] = _no_ledger
    # The ledger's price of one slot or one running request, charged or not; None where the unit is another.
    price: Callable[[Rank], int] | None = None
    # Bytes the engine's sizer charges for a unit on this rank; None: its budget never pays.
    charge: Callable[[Rank], int] | None = None
    # Allocated less charged, cause by cause.
    difference: Callable[[Rank, PoolSizes], Iterable[Part]] = _no_difference
    # Where it lies, what of the radix tree points at it, and its copy in DRAM.
    locations: Callable[[Rank], Iterable[Location]] = _nothing
    # The numbers of a boot log that its tensors make.
    printed: tuple[Printed, ...] = ()
    # The draft worker's own, beside the target's.
    of_draft: bool = False
    # Which share of HiCache's host memory is measured by its device bytes.
    host_share: Literal["kv", "state", "draft"] | None = None

    def charged_bytes(self, rank: Rank, sizes: PoolSizes) -> int:
        """What the budget pays for pools of `sizes`."""
        return 0 if self.charge is None else self.charge(rank) * charged_units(self.unit, rank, sizes)

    def account(self, formula: str, source: str, *, backed_up: bool = False) -> Account:
        """The words of this component's ledger."""
        return Account(self.name, self.title, self.unit, formula, source, self.charge is not None, backed_up)


def tree_part(deployment: Deployment, part: Literal["FULL", "MAMBA"]) -> Literal["FULL", "MAMBA"] | None:
    """The radix-tree component, where there is a tree."""
    return None if deployment.disable_radix_cache else part


def no_copy(deployment: Deployment) -> str | None:
    """Why nothing at all is copied to DRAM; None where HiCache is on."""
    if deployment.enable_hierarchical_cache:
        return None
    if deployment.disable_radix_cache:
        return "the radix cache is off: nothing outlives its request"
    return "HiCache is off"
