"""The free memory that explains printed sizes: the sizing run backwards.

The log prints memory with two decimals and before the last few allocations; the sizes it prints are integers that
only a narrow band of free memory gives.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from glm_kvplan.engines.sglang.boot_log.log_rows import PrintedSizes
from glm_kvplan.engines.sglang.sizing.solver import Solution

_NEAR = 4  # slots on either side, where the log does not print them


class Band(NamedTuple):
    """All free memory from `least_gib` up to `most_gib` gives the printed sizes."""

    least_gib: float
    most_gib: float

    @property
    def middle_gib(self) -> float:
        return (self.least_gib + self.most_gib) / 2

    def distance(self, gib: float) -> float:
        """How far `gib` lies above the band (negative: below it; 0: inside)."""
        return min(gib - self.least_gib, max(gib - self.most_gib, 0.0))


def fit(attempt: Callable[[float], Solution], most_gib: float, printed: PrintedSizes) -> Band | None:
    """The band of `available_gib` up to `most_gib` for which `attempt` gives the printed sizes; None: there is none.

    State slots grow with memory; at equal slots so do tokens. Each is bisected in that order. Without tokens there is
    no band.
    """
    tokens = printed.tokens
    if tokens is None:
        return None
    for slots in _slots(attempt, most_gib, tokens, printed.state_slots):
        low = _first(lambda gib, wanted=slots: attempt(gib).state_slots >= wanted, 0.0, most_gib)  # type: ignore[misc]
        if attempt(low).state_slots != slots:
            continue
        high = _first(lambda gib, wanted=slots: attempt(gib).state_slots > wanted, low, most_gib)  # type: ignore[misc]
        low = _first(lambda gib: attempt(gib).tokens >= tokens, low, high)
        high = _first(lambda gib: attempt(gib).tokens > tokens, low, high)
        if _same(attempt(low), printed):
            return Band(low, high)
    return None


def _same(found: Solution, printed: PrintedSizes) -> bool:
    return found.failure is None and all(
        size is None or size == other for size, other in zip(printed, found.sizes, strict=True)
    )


def _slots(
    attempt: Callable[[float], Solution], most_gib: float, tokens: int, printed_slots: int | None
) -> Iterator[int]:
    """State slots to try: the printed ones, or those around the memory that gives the tokens."""
    if printed_slots is not None:
        yield printed_slots
    else:
        middle = attempt(_first(lambda gib: attempt(gib).tokens >= tokens, 0.0, most_gib)).state_slots
        yield from sorted(range(middle - _NEAR, middle + _NEAR + 1), key=lambda slots: abs(slots - middle))


def _first(holds: Callable[[float], bool], low: float, high: float) -> float:
    """The least memory in [low, high] where a condition that stays true once it is true holds; `high` where never."""
    if holds(low):
        return low
    while low < (middle := (low + high) / 2) < high:
        if holds(middle):
            high = middle
        else:
            low = middle
    return high
