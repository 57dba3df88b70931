"""A sweep as Parquet, a row group at a time; needs pyarrow."""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import IO, Any

from glm_kvplan.answers.sweep.columns import Column
from glm_kvplan.errors import InputError

GROUP = 50_000  # rows


def check_installed() -> None:
    """Raise InputError where pyarrow is not."""
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        raise InputError("--format parquet needs pyarrow: pip install pyarrow, or take --format csv") from None


def write(columns: Sequence[Column], rows: Iterable[tuple[Any, ...]], stream: IO[bytes]) -> None:
    """Write the rows so far even where `rows` is interrupted: the file is whole either way."""
    import pyarrow as pa
    from pyarrow.parquet import ParquetWriter

    types = {"int": pa.int64(), "float": pa.float64(), "text": pa.string(), "flag": pa.bool_()}
    schema = pa.schema([(column.name, types[column.kind]) for column in columns])
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
