"""A sweep as JSON Lines: one object a point, streamed."""

import json
from collections.abc import Iterable, Sequence
from typing import IO, Any

from glm_kvplan.answers.sweep.columns import Column


def write(columns: Sequence[Column], rows: Iterable[tuple[Any, ...]], stream: IO[str]) -> None:
    """Write one line a row; a missing value is null."""
    names = [column.name for column in columns]
    encode = json.JSONEncoder(ensure_ascii=False).encode
    for row in rows:
        stream.write(encode(dict(zip(names, row, strict=True))) + "\n")
