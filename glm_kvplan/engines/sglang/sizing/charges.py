"""What the engine's memory budget pays for: the solver's prices times the units as the engine counts them."""

from typing import NamedTuple

from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.sizing.rank_costs import Costs


class Charges(NamedTuple):
    """Bytes of one rank that the budget pays for."""

    states: int
    rings: int
    snapshots: int
    tokens: int  # latent rows and index keys, the draft's with them

    @property
    def total(self) -> int:
        return sum(self)


def charges(rank: Costs, sizes: PoolSizes) -> Charges:
    """The engine's own charge for the sizes it decided, or for sizes given to it.

    Source: mem_cache/kv_cache_configurator.py:2402-2569 at 0.5.21.
    """
    slots = sizes.state_slots + 1
    return Charges(
        rank.slot_bytes * slots,
        rank.ring_bytes * slots,
        rank.slot_bytes * rank.snapshot_drafts * charged_rows(rank, sizes),
        rank.cell_bytes * sizes.tokens,
    )


def charged_rows(rank: Costs, sizes: PoolSizes) -> int:
    """Request rows whose verify snapshots are charged: what the slots admit, capped by the requests, and one more."""
    return min(rank.requests or 0, sizes.state_slots // rank.slots_per_request) + 1
