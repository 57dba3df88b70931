"""The frontier of context against concurrency, by hand from the pools' sizes."""

import pytest

from glm_kvplan.answers.sweep.axes import read_axis
from glm_kvplan.answers.sweep.pareto import context_axis, frontier
from glm_kvplan.answers.sweep.points import Row, Sweep
from glm_kvplan.engines.planner import given
from glm_kvplan.errors import InputError
from glm_kvplan.memory.given import MemoryGiven

START = given({"tp_size": 4, "speculative_algorithm": "EAGLE", "max_running_requests": 5000}, gpu="b200")
MEASURED = MemoryGiven(177.0, 126.0)


def front(*over: str) -> list[tuple[int, int, str]]:
    sweep = Sweep(START, [read_axis(text) for text in over], MEASURED)
    names = [column.name for column in sweep.columns]
    places = [names.index(name) for name in ("context", "served", "served_bound_by")]

    def told(row: Row) -> tuple[int, int, str]:
        context, served, limit = (row[place] for place in places)
        return context, served, limit

    return [told(row) for row in frontier(sweep, sweep)]


def test_most_requests_at_every_context() -> None:
    """706 slots serve 141 requests of 5; longer contexts fill whole pages of 64, 8 places ahead for the drafts."""
    sweep = Sweep(START, [read_axis("context=1k")], MEASURED)
    point = dict(zip([column.name for column in sweep.columns], next(iter(sweep)), strict=True))
    tokens, slots = point["max_total_num_tokens"], point["max_mamba_cache_size"]
    assert (slots, slots // 5) == (706, 141)
    expected = []
    for context in (1 << power for power in range(10, 21)):
        fit = tokens // ((context + 8 + 63) // 64 * 64)
        expected.append((context, min(fit, 141), "tokens" if fit < 141 else "state slots"))
    best = [row for row in expected if not any(other[0] > row[0] and other[1] >= row[1] for other in expected)]
    assert len(best) < len(expected)
    assert front("context=1k..1m:x2") == best


def test_the_best_of_all_axes_counts() -> None:
    alone = {context: served for context, served, _ in front("context=64k..1m:x2")}
    pooled = {context: served for context, served, _ in front("engine=0.5.21,0.5.23", "context=64k..1m:x2")}
    assert all(pooled[context] > served for context, served in alone.items())  # 0.5.23 pools the index: more tokens
    assert {context: served for context, served, _ in front("engine=0.5.23", "context=64k..1m:x2")} == pooled


def test_points_that_serve_nothing_are_left_out() -> None:
    assert front("mem_fraction_static=0.1", "context=1k,2k") == []
    assert [row[0] for row in front("context_length=4k", "context=1k,2k,8k")] == [2048]


def test_default_contexts() -> None:
    assert list(context_axis(given())) == [1 << power for power in range(10, 21)]
    assert list(context_axis(given({"context_length": 5000}))) == [1024, 2048, 4096, 5000]
    assert list(context_axis(given({"context_length": 700}))) == [700]
    assert list(context_axis(given({"context_length": 1}))) == [1]
    assert list(context_axis(given(), [read_axis("context_length=2k,4k")])) == [1024, 2048, 4096]
    assert list(context_axis(given(), [read_axis("context_length=2k,none")]))[-1] == 1 << 20


def test_contexts_are_needed() -> None:
    with pytest.raises(InputError, match="context"):
        frontier(Sweep(START, [read_axis("tp_size=4")], MEASURED), [])
