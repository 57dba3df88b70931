"""How much many requests take together when each draws its size at random: a quantile of their sum."""

from functools import lru_cache
from math import ceil, gcd, log, sqrt
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy import ndarray

_MOST_CELLS = 1 << 16  # of the grid that sums are counted on
_MOST_DRAWN = 4096  # requests: beyond, Hoeffding's bound lies within a few percent of the sum
_OUTSIDE = 1e-9  # probability that a sum lies outside the grid


@lru_cache(maxsize=4096)
def quantile_of_sum(sizes: tuple[int, ...], weights: tuple[int, ...], draws: int, confidence: float) -> int:
    """The least sum that `draws` independent draws stay within with probability `confidence`, or a little more.

    A draw is `sizes[i]` with probability `weights[i]` / sum(weights). Exact where the sizes' differences share a unit
    that is large enough: the distribution of a sum is the convolution of its parts, a power of their Fourier
    transform. Otherwise sizes are rounded up to a grid, so the answer errs upwards, by less than draws times one cell.
    Above 4,096 draws it is Hoeffding's bound (Probability inequalities for sums of bounded random variables, 1963).
    """
    smallest, largest, whole = min(sizes), max(sizes), sum(weights)
    if smallest == largest:
        return draws * smallest
    mean = sum(size * weight for size, weight in zip(sizes, weights, strict=True)) / whole
    if draws > _MOST_DRAWN:
        above = (largest - smallest) * sqrt(draws * log(1 / (1 - confidence)) / 2)
        return min(draws * largest, ceil(draws * mean + above))

    import numpy as np

    unit = gcd(*(size - smallest for size in sizes))
    spread = sqrt(draws * log(2 / _OUTSIDE) / 2)  # of a sum around its mean, in units of the largest difference
    most_steps = int(_MOST_CELLS / (2 * spread + 1))
    if (largest - smallest) // unit > most_steps and draws * ((largest - smallest) // unit) >= _MOST_CELLS:
        unit = -(-(largest - smallest) // most_steps)
    steps = [-(-(size - smallest) // unit) for size in sizes]
    one = np.zeros(max(steps) + 1)
    np.add.at(one, steps, np.array([weight / whole for weight in weights]))
    expected = draws * float(np.arange(len(one)) @ one)
    cells = min(draws * max(steps), int(2 * spread * max(steps)) + 2) + 1
    first = max(0, min(int(expected - spread * max(steps)), draws * max(steps) - cells + 1))
    cells = 1 << (cells - 1).bit_length()
    drawn = np.fft.irfft(_power(np.fft.rfft(one, cells), draws), cells)  # of sums modulo `cells`
    reached = np.cumsum(np.roll(drawn, -first))
    return draws * smallest + unit * (first + int(np.searchsorted(reached, confidence)))


def _power(values: "ndarray[Any, Any]", exponent: int) -> "ndarray[Any, Any]":
    """By squaring, for an exponent from 1: numpy's own power of complex numbers takes five times as long."""
    found = None
    while True:
        if exponent & 1:
            found = values if found is None else found * values
        exponent >>= 1
        if not exponent:
            assert found is not None
            return found
        values = values * values


def likely_draws(sizes: tuple[float, ...], weights: tuple[int, ...], total: float, confidence: float) -> int:
    """About how many draws stay within `total` together with probability `confidence`: where to look for the number.

    A sum of many draws is nearly normal, and its deviation grows with the root of their number.
    """
    whole = sum(weights)
    mean = sum(size * weight for size, weight in zip(sizes, weights, strict=True)) / whole
    square = sum(size * size * weight for size, weight in zip(sizes, weights, strict=True)) / whole
    # statistics loads fractions and decimal, which one context length does without
    from statistics import NormalDist

    half = (NormalDist().inv_cdf(confidence) if confidence > 0.5 else 0.0) * sqrt(max(0.0, square - mean * mean)) / 2
    return int(((sqrt(half * half + mean * max(0.0, total)) - half) / mean) ** 2)
