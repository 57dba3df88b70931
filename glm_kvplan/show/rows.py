"""Rows streamed to a file, one at a time: CSV, JSON Lines, or Parquet (a row group at a time; needs pyarrow)."""

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import islice
from typing import IO, Any, NamedTuple

from glm_kvplan.errors import InputError
from glm_kvplan.show.printable import cell, json_text, visible

GROUP = 50_000  # rows of Parquet written at once
Rows = Iterable[tuple[Any, ...]]


class Field(NamedTuple):
    """What stands at one place of every row. `kind`: int, float, text or flag; a value may be missing (None)."""

    name: str
    kind: str


def write_csv(fields: Sequence[Field], rows: Rows, stream: IO[str]) -> None:
    """Write a header and the rows, a missing value empty. Reading gives the same: floats are written in full, flags are
    true and false. Text is on one line, and quoted where a spreadsheet would run it.
    """
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(field.name for field in fields)
    writer.writerows(_spelled(fields, rows))


def _spelled(fields: Sequence[Field], rows: Rows) -> Iterator[Sequence[Any]]:
    texts = [at for at, field in enumerate(fields) if field.kind == "text"]
    flags = [at for at, field in enumerate(fields) if field.kind == "flag"]
    for row in rows:
        words = list(row)
        for at in texts:
            if words[at]:
                words[at] = _cell(words[at])
        for at in flags:
            if words[at] is not None:
                words[at] = str(words[at]).lower()
        yield words


@lru_cache(maxsize=256)  # most words come again in every row
def _cell(text: str) -> str:
    return cell(visible(text))


def write_jsonl(fields: Sequence[Field], rows: Rows, stream: IO[str]) -> None:
    """Write one object a row; a missing value is null."""
    names = [field.name for field in fields]
    encode = json.JSONEncoder(ensure_ascii=False).encode
    for row in rows:
        stream.write(json_text(encode(dict(zip(names, row, strict=True)))) + "\n")


def check_parquet() -> None:
    """Raise InputError where pyarrow is not installed."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        raise InputError("--format parquet needs pyarrow: pip install pyarrow, or take --format csv") from None


def write_parquet(fields: Sequence[Field], rows: Rows, stream: IO[bytes]) -> None:
    """Write the rows so far even where `rows` is interrupted: the file is whole either way."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    types = {"int": pa.int64(), "float": pa.float64(), "text": pa.string(), "flag": pa.bool_()}
    schema = pa.schema([(field.name, types[field.kind]) for field in fields])
    rows = iter(rows)
    with ParquetWriter(stream, schema) as writer:
        group: list[tuple[Any, ...]] = []
        try:
            while True:
                group.extend(islice(rows, GROUP))
                if not group:
                    return
                table = _table(pa, schema, group)
                group.clear()  # first: an interrupt comes after the write, and must not write it again
                writer.write_table(table)
        except KeyboardInterrupt:
            if group:
                writer.write_table(_table(pa, schema, group))
            raise


def _table(pa: Any, schema: Any, rows: list[tuple[Any, ...]]) -> Any:
    arrays = [pa.array(values, field.type) for values, field in zip(zip(*rows, strict=True), schema, strict=True)]
    return pa.Table.from_arrays(arrays, schema=schema)
