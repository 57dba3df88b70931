"""The frontier of context against concurrency: what no other point beats in both."""

from collections.abc import Iterable
from typing import Any

from glm_kvplan.answers.sweep.axes import Axis, read_axis
from glm_kvplan.answers.sweep.points import Sweep
from glm_kvplan.engines.protocol import Given
from glm_kvplan.engines.sweep_columns import SERVED, sweeping
from glm_kvplan.errors import InputError

SHORTEST = 1024


def context_axis(given: Given, axes: Iterable[Axis] = ()) -> Axis:
    """Contexts from 1K on, doubling, up to the longest the server takes; that one is always among them.

    Where the context length is an axis the longest of its values counts.
    """
    flag = sweeping(given.profile.engine).CONTEXT_FLAG
    asked = [value for axis in axes if axis.name == flag for value in axis]
    whole = given.model.geometry.max_position_embeddings
    own = _tokens(given.flags.get(flag), whole)
    longest = max((_tokens(value, own) for value in asked), default=own)
    if longest < SHORTEST:
        return read_axis(f"context={longest}")
    doubling = f"context={SHORTEST}..{longest}:x2"
    last = SHORTEST << (longest // SHORTEST).bit_length() - 1
    return read_axis(doubling if last == longest else f"{doubling},{longest}")


def _tokens(value: object, otherwise: int) -> int:
    """A number of tokens; -1 leaves it to the engine."""
    return value if isinstance(value, int) and value > 0 else otherwise


def frontier(sweep: Sweep, rows: Iterable[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The rows that no other row beats: longer contexts come with fewer requests at once.

    `rows` are of a sweep with a context axis and no cap on concurrency. For each context the row counts that serves
    most requests (the first of equals); of contexts that serve as many only the longest. Rows that serve none are
    left out. Memory grows with the number of contexts alone.
    """
    names = [column.name for column in sweep.columns]
    if "context" not in names:
        raise InputError("--frontier needs contexts: add --over context=1k..1m:x2")
    context, served = names.index("context"), names.index(SERVED)
    most: dict[int, tuple[Any, ...]] = {}
    for row in rows:
        if row[served] and (row[context] not in most or row[served] > most[row[context]][served]):
            most[row[context]] = row
    found: list[tuple[Any, ...]] = []
    for length in sorted(most, reverse=True):
        if not found or most[length][served] > found[-1][served]:
            found.append(most[length])
    return found[::-1]
