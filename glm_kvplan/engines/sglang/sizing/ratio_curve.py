"""Tokens against state slots as mamba_full_memory_ratio moves, and where the present and advised splits lie."""

from typing import NamedTuple

from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.sizing.server import Server
from glm_kvplan.engines.sglang.sizing.solver import Solution
from glm_kvplan.engines.sglang.sizing.split import requests_wanted, slots_needed, tokens_of
from glm_kvplan.workload import Demand

RATIOS = (0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 6.0, 10.0, 20.0)


class RatioPoint(NamedTuple):
    """What one rank holds. `ratio` is None where flags fix the slots instead."""

    ratio: float | None
    tokens: int
    slots: int
    requests: int  # the engine's max_running_requests, of one DP worker


class RatioCurve(NamedTuple):
    """The curve of one rank, by rising ratio; ratios at which the engine refuses to start are left out."""

    points: tuple[RatioPoint, ...]
    default: RatioPoint | None  # the engine's default ratio; None where it does not start there
    present: RatioPoint
    advised: RatioPoint | None
    need_tokens: int  # what the demand needs of one worker
    need_slots: int

    @property
    def moves(self) -> bool:
        """The ratio decides: without a radix cache the requests fix the slots and it does nothing."""
        return len({point.slots for point in self.points}) > 1


def ratio_curve(solution: Solution, server: Server, demand: Demand, advised: PoolSizes | None) -> RatioCurve:
    """The curve of a server that starts, with every other flag as it is and no explicit slots."""
    points = tuple(point for ratio in RATIOS if (point := _at(server, ratio)) is not None)
    ratio = solution.costs.state_ratio if solution.costs.state_slots is None else None
    tokens, slots = needs(server, demand)
    return RatioCurve(
        points,
        _at(server, None),
        RatioPoint(ratio, *solution.sizes),
        None if advised is None else RatioPoint(None, *advised),
        tokens,
        slots,
    )


def needs(server: Server, demand: Demand) -> tuple[int, int]:
    """Tokens and state slots the busiest worker needs for its share of the demand."""
    requests = requests_wanted(server, demand)
    return tokens_of(server, demand, requests), slots_needed(server, demand, requests)


def _at(server: Server, ratio: float | None) -> RatioPoint | None:
    """The point of a ratio, None for the engine's default one; None where it does not start there."""
    other = server.tried(mamba_full_memory_ratio=ratio, max_mamba_cache_size=None)
    if other is None or not other.starts:
        return None
    return RatioPoint(other.deployment.mamba_full_memory_ratio, *other.solution.sizes)
