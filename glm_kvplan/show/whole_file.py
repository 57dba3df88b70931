"""Where an answer is written: standard output, or a file that is there whole or not at all."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from glm_kvplan.errors import InputError


@contextmanager
def destination(path: str | None, *, binary: bool = False, partial: bool = False) -> Iterator[IO[Any]]:
    """A stream to write to. A file gets its name only when all is written: readers see the old one or the new one.

    A link stays a link, and a file keeps its permissions. With `partial`, Ctrl-C keeps the rows written so far in
    FILE.partial. Raises InputError where the file cannot be written.
    """
    if path is None or path == "-":
        stream = sys.stdout.buffer if binary else sys.stdout
        try:
            yield stream
        finally:
            stream.flush()
        return
    target = Path(path)
    if target.exists() and not target.is_file():  # a device or a pipe, which cannot be replaced
        with _open(target, "w", binary) as stream:
            yield stream
        return
    target = target.resolve()
    unfinished = target.with_name(f".{target.name}.{os.getpid()}.part")
    opened = _open(unfinished, "x", binary)
    try:
        with opened:
            yield opened
        if target.exists():
            unfinished.chmod(target.stat().st_mode & 0o777)
        unfinished.replace(target)
    except OSError as error:
        unfinished.unlink(missing_ok=True)
        raise InputError(f"-o {path}: cannot be written ({error.strerror})") from None
    except BaseException as error:
        if partial and isinstance(error, KeyboardInterrupt):
            kept = target.with_name(f"{target.name}.partial")
            unfinished.replace(kept)
            print(f"kvplan: stopped; the rows so far are in {kept}", file=sys.stderr)
        unfinished.unlink(missing_ok=True)
        raise


def _open(path: Path, mode: str, binary: bool) -> IO[Any]:
    try:
        if binary:
            return path.open(mode + "b")
        return path.open(mode, encoding="utf-8", newline="")
    except OSError as error:
        raise InputError(f"-o {path.parent}: cannot be written ({error.strerror})") from None
