"""How many units of each pool one rank holds."""

from typing import NamedTuple


class PoolSizes(NamedTuple):
    """The engine's three integers, per rank (a DP worker's own, never the sum over workers)."""

    tokens: int  # max_total_num_tokens
    state_slots: int  # max_mamba_cache_size after sizing
    running_requests: int  # max_running_requests after sizing
