"""`--sort` and `--best`: rows in order of a column, or the first few of them in constant memory."""

import difflib
import heapq
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple

from glm_kvplan.engines.sweep_columns import Column
from glm_kvplan.errors import InputError

MOST_SORTED = 1_000_000  # rows held at once: under a gigabyte

_Row = tuple[Any, ...]


class Order(NamedTuple):
    """Rows by the value at a place. Rows without one come last either way; equal ones keep their order."""

    at: int
    descending: bool

    def key(self, row: _Row) -> tuple[bool, Any]:
        """What is compared; from large to small where `descending`."""
        value = row[self.at]
        return (value is None) is not self.descending, 0 if value is None else value

    def sorted(self, rows: Iterable[_Row]) -> list[_Row]:
        """All rows in order. Raises InputError for more than memory should hold."""
        rows = iter(rows)
        held = list(islice(rows, MOST_SORTED))
        if next(rows, None) is not None:
            raise InputError(f"--sort holds {MOST_SORTED:,} rows at most; add --best N or --where")
        held.sort(key=self.key, reverse=self.descending)
        return held

    def best(self, rows: Iterable[_Row], count: int) -> list[_Row]:
        """The first `count` rows in order; no more than these are held."""
        pick = heapq.nlargest if self.descending else heapq.nsmallest
        return pick(count, rows, key=self.key)


def read_order(text: str, columns: Sequence[Column]) -> Order:
    """`COLUMN`, `COLUMN:asc` or `COLUMN:desc`. Raises InputError for anything else."""
    name, _, way = text.strip().partition(":")
    if way not in ("", "asc", "desc"):
        raise InputError(f"--sort {text[:60]!r}: write COLUMN, COLUMN:asc or COLUMN:desc")
    names = [column.name for column in columns]
    if name not in names:
        near = difflib.get_close_matches(name[:60], names)
        raise InputError(f"--sort: {name[:40]!r} is no column; there are {', '.join(near or names)}")
    return Order(names.index(name), way == "desc")
