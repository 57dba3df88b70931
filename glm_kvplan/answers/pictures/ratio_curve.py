"""Tokens against state slots as mamba_full_memory_ratio moves, and where the present and advised splits lie."""

from typing import Any, NamedTuple

from glm_kvplan.engines.sglang.sizing.advice import Advice
from glm_kvplan.engines.sglang.sizing.served_requests import Demand
from glm_kvplan.engines.sglang.sizing.solver import Solution
from glm_kvplan.engines.sglang.sizing.split import DEFAULT_RATIO, requests_wanted, slots_needed, tokens_of
from glm_kvplan.engines.sglang.sizing.start import Boot
from glm_kvplan.engines.sglang.sizing.what_if import Setup

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


def ratio_curve(answer: Boot, setup: Setup, demand: Demand, advice: Advice | None) -> RatioCurve:
    """The curve of a setup that starts, with every other flag as it is and no explicit slots."""
    points = tuple(point for ratio in RATIOS if (point := _at(setup, ratio)) is not None)
    ratio = answer.solution.costs.state_ratio if answer.solution.costs.state_slots is None else None
    advised = None
    if advice is not None and advice.solution is not None:
        advised = _point(None, advice.solution)
    tokens, slots = needs(setup, demand)
    return RatioCurve(points, _at(setup, DEFAULT_RATIO), _point(ratio, answer.solution), advised, tokens, slots)


def needs(setup: Setup, demand: Demand) -> tuple[int, int]:
    """Tokens and state slots the busiest worker needs for its share of the demand."""
    requests = requests_wanted(setup, demand)
    return tokens_of(setup, demand, requests), slots_needed(setup, demand, requests)


def _at(setup: Setup, ratio: float) -> RatioPoint | None:
    changes: dict[str, Any] = {"mamba_full_memory_ratio": ratio, "max_mamba_cache_size": None}
    solution = setup.attempt(**changes)
    return None if solution is None or solution.failure is not None else _point(ratio, solution)


def _point(ratio: float | None, solution: Solution) -> RatioPoint:
    return RatioPoint(ratio, solution.tokens, solution.state_slots, solution.running_requests)
