"""A quantile of the sum of drawn sizes, against the binomial distribution, simulation and exact convolution."""

import random
from fractions import Fraction
from math import comb

from hypothesis import given, settings
from hypothesis import strategies as st

from glm_kvplan.contexts import contexts, parse_contexts
from glm_kvplan.quantile import likely_draws, quantile_of_sum

DRAWN = st.lists(
    st.tuples(st.integers(1, 40), st.integers(1, 9)), min_size=1, max_size=5, unique_by=lambda pair: pair[0]
)


def test_two_sizes_are_binomial() -> None:
    for draws in (1, 2, 5, 50, 333, 1000):
        reached, long = Fraction(0), -1
        while reached < Fraction(99, 100):
            long += 1
            reached += comb(draws, long) * Fraction(1, 5) ** long * Fraction(4, 5) ** (draws - long)
        assert quantile_of_sum((131072, 8192), (1, 4), draws, 0.99) == long * 131072 + (draws - long) * 8192


@given(DRAWN, st.integers(1, 12), st.sampled_from((0.5, 0.9, 0.99, 0.9999)))
def test_small_sums_are_exact(drawn: list[tuple[int, int]], draws: int, confidence: float) -> None:
    whole = sum(weight for _, weight in drawn)
    sums = {0: Fraction(1)}
    for _ in range(draws):
        longer: dict[int, Fraction] = {}
        for total, chance in sums.items():
            for size, weight in drawn:
                longer[total + size] = longer.get(total + size, Fraction(0)) + chance * Fraction(weight, whole)
        sums = longer
    sizes, weights = tuple(size for size, _ in drawn), tuple(weight for _, weight in drawn)
    found = quantile_of_sum(sizes, weights, draws, confidence)
    within = sum((chance for total, chance in sums.items() if total <= found), Fraction(0))
    below = sum((chance for total, chance in sums.items() if total < found), Fraction(0))
    rounding = Fraction(1, 10**9)
    assert within >= Fraction(confidence) - rounding and below < Fraction(confidence) + rounding


def test_a_histogram_errs_upwards_by_less_than_a_cell_a_draw() -> None:
    drawn = random.Random(7)
    sizes = tuple(drawn.randrange(100, 200_000) for _ in range(300))
    weights = tuple(drawn.randrange(1, 50) for _ in sizes)
    for draws in (10, 100, 1000):
        found = quantile_of_sum(sizes, weights, draws, 0.99)
        sums = sorted(sum(drawn.choices(sizes, weights, k=draws)) for _ in range(2000))
        assert sum(total <= found for total in sums) >= 1964  # 1,980 within three and a half of its own deviations
        assert found < sums[-1] * 1.01


@settings(max_examples=20, deadline=None)
@given(st.integers(4097, 100_000), st.sampled_from((0.5, 0.99)))
def test_many_draws_are_bounded(draws: int, confidence: float) -> None:
    found = quantile_of_sum((131072, 8192), (1, 4), draws, confidence)
    mean = 32768 * draws
    deviation = (131072 - 8192) * 0.4 * draws**0.5
    assert mean <= found
    if confidence == 0.99:
        assert mean + 2.33 * deviation <= found <= mean + 4 * deviation


def test_how_many_draws_fit_is_guessed_closely() -> None:
    sizes, weights = (77_777, 20_001, 3_000), (2, 3, 5)
    for draws in (10, 64, 400, 3000):
        total = quantile_of_sum(sizes, weights, draws, 0.99)
        # the sum itself errs by less than a cell a draw, some 400 of 24,000 tokens at 3,000 draws
        assert abs(likely_draws(sizes, weights, total, 0.99) - draws) <= 2 + draws / 60


def test_one_length_is_no_mix() -> None:
    assert parse_contexts("128k").tokens(7, 64) == 7 * 131072
    assert contexts([(100, 1)]).tokens(3, 64) == 3 * 128
    assert parse_contexts("0.8:8k,0.2:128k").total(0, int) == 0


def test_a_mean_promises_less() -> None:
    mix = parse_contexts("0.8:8k,0.2:128k")
    assert mix.as_mean.tokens(100, 64) == 20 * 131072 + 80 * 8192
    # 30 of 100 are long in 99 % of all moments (binomial, 1/5)
    assert mix.tokens(100, 64) == 30 * 131072 + 70 * 8192
