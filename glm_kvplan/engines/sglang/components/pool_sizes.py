"""How many units of each pool one rank holds."""

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from fractions import Fraction


class PoolSizes(NamedTuple):
    """The engine's three integers, per rank (a DP worker's own, never the sum over workers)."""

    tokens: int  # max_total_num_tokens
    state_slots: int  # max_mamba_cache_size after sizing
    running_requests: int  # max_running_requests after sizing

    def scaled(self, factor: "Fraction", page_size: int) -> "PoolSizes":
        """The sizes times `factor`, tokens in whole pages, one page, slot and request at least."""
        return PoolSizes(
            max(int(self.tokens * factor) // page_size, 1) * page_size,
            max(int(self.state_slots * factor), 1),
            max(int(self.running_requests * factor), 1),
        )
