"""Whole numbers found by halving: what holds on one side of a point and not on the other."""

from collections.abc import Callable

MOST_DOUBLED = 1 << 30  # no ratio, size or slot count of a real machine comes near


def largest(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The largest number in [low, high] that holds; `low` does, and what holds for a number holds below it."""
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low


def largest_near(likely: int, holds: Callable[[int], bool], low: int, high: int) -> int:
    """As `largest`, from a number that is likely: few are tried where it lies near."""
    at, step = min(max(likely, low), high), 1
    if holds(at):
        while at < high and holds(min(at + step, high)):
            at, step = min(at + step, high), 2 * step
        return largest(holds, at, min(at + step - 1, high))
    while at - step > low and not holds(at - step):
        at, step = at - step, 2 * step
    return largest(holds, max(at - step, low), at - 1)


def least(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The least number above `low` that holds; `high` does, and what holds for a number holds above it."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def largest_unbounded(holds: Callable[[int], bool]) -> int | None:
    """As `largest` from 1 on, where no upper end is known: it is found by doubling. None where not even 1 holds."""
    if not holds(1):
        return None
    low, high = 1, 2
    while high < MOST_DOUBLED and holds(high):
        low, high = high, 2 * high
    return largest(holds, low, high - 1)
