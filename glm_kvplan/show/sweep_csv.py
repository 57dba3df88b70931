"""A sweep as CSV: one line a point, streamed. A missing value is empty; flags are true and false."""

import csv
from collections.abc import Iterable, Sequence
from typing import IO, Any

from glm_kvplan.answers.sweep.columns import Column


def write(columns: Sequence[Column], rows: Iterable[tuple[Any, ...]], stream: IO[str]) -> None:
    """Write a header and the rows. Floats are written so that reading them gives the same float."""
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(column.name for column in columns)
    if any(column.kind == "flag" for column in columns):
        rows = (tuple(map(_word, row)) for row in rows)
    writer.writerows(rows)


def _word(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value
