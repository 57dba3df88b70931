"""Where a sweep is written: standard output, or a file that is there whole or not at all."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from glm_kvplan.errors import InputError


@contextmanager
def destination(path: str | None, *, binary: bool = False) -> Iterator[IO[Any]]:
    """A stream to write to. A file gets its name only when all is written.

    Ctrl-C keeps the rows written so far in FILE.partial. Raises InputError where the file cannot be written.
    """
    if path is None or path == "-":
        try:
            yield sys.stdout
        finally:
            sys.stdout.flush()
        return
    target = Path(path)
    if target.exists() and not target.is_file():  # a device or a pipe, which cannot be replaced
        with _open(target, "w", binary) as stream:
            yield stream
        return
    unfinished = target.with_name(f".{target.name}.{os.getpid()}.part")
    stream = _open(unfinished, "x", binary)
    try:
        with stream:
            yield stream
    except KeyboardInterrupt:
        partial = target.with_name(f"{target.name}.partial")
        unfinished.replace(partial)
        print(f"kvplan: stopped; the rows so far are in {partial}", file=sys.stderr)
        raise
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    unfinished.replace(target)


def _open(path: Path, mode: str, binary: bool) -> IO[Any]:
    try:
        if binary:
            return path.open(mode + "b")
        return path.open(mode, encoding="utf-8", newline="")
    except OSError as error:
        raise InputError(f"-o {path.parent}: cannot be written ({error.strerror})") from None
