"""A file or stream read whole, with its guard up: bounded in bytes and time, regular files and streams that end."""

import os
import select
import stat
import sys
import time
from pathlib import Path

from glm_kvplan.errors import InputError
from glm_kvplan.reading.files_read import note_read

PIPE_SECONDS = 30.0  # a pipe that has not ended by then is given up
_PIECE = 1 << 16


def read_bytes(path: str | Path, name: str, *, most: int, advice: str, pipes: bool = True) -> bytes:
    """The bytes of a regular file, or of a pipe that ends. `name` is the file in messages, `advice` the end of the one
    about a file that is too large.

    Raises InputError for a file that cannot be read, is larger than `most` bytes, is a directory or a device, or is a
    pipe that stays open for 30 seconds (any pipe, without `pipes`).
    """
    try:
        path = Path(path)
        found = path.stat()
        if stat.S_ISREG(found.st_mode):
            _refuse_large(found.st_size, name, most, advice)
            note_read(found)
            with path.open("rb") as file:
                data = file.read(most + 1)
        elif pipes and stat.S_ISFIFO(found.st_mode):  # `--launch <(helm template ...)`
            data = _read_pipe(path, name, most)
        else:
            kind = "a directory" if stat.S_ISDIR(found.st_mode) else "a pipe or a device"
            raise InputError(f"{name}: cannot be read (it is {kind}, not a regular file)")
    except InputError:
        raise
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(f"{name}: cannot be read ({reason})") from None
    _refuse_large(len(data), name, most, advice)
    return data


def read_text(path: str | Path, name: str, *, most: int, advice: str) -> str:
    """The text of a file, a byte-order mark left out. Raises InputError as `read_bytes`, and for no UTF-8 text."""
    return _decoded(read_bytes(path, name, most=most, advice=advice), name)


def read_stdin(name: str, *, most: int, advice: str) -> str:
    """The text on standard input; as `read_text`. It may take its time: whoever types or pipes can end it."""
    if sys.stdin is None:
        raise InputError(f"{name}: standard input is closed")
    try:
        data = sys.stdin.buffer.read(most + 1)
    except OSError as error:
        raise InputError(f"{name}: cannot be read ({error.strerror or error})") from None
    _refuse_large(len(data), name, most, advice)
    return _decoded(data, name)


def inside(folder: Path, name: str, shown: str) -> Path:
    """The path of `name` in `folder`, links followed. Raises InputError where that lies outside the folder."""
    try:
        path, root = (folder / name).resolve(), folder.resolve()
    except (OSError, RuntimeError, ValueError):  # a ring of links, a NUL in the name
        raise InputError(f"{shown}: cannot be read") from None
    if not path.is_relative_to(root):
        raise InputError(f"{shown}: lies outside the folder of the file that names it, and is not read")
    return path


def _read_pipe(path: Path, name: str, most: int) -> bytes:
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)  # opened the common way it would wait for a writer
    try:
        ends = time.monotonic() + PIPE_SECONDS
        found = bytearray()
        while len(found) <= most:
            try:
                piece = os.read(handle, _PIECE)
            except BlockingIOError:
                left = ends - time.monotonic()
                if left > 0 and select.select([handle], [], [], left)[0]:
                    continue
                raise InputError(
                    f"{name}: cannot be read (the pipe has not ended after {PIPE_SECONDS:.0f} seconds)"
                ) from None
            if not piece:  # the writer has left, or there is none
                break
            found += piece
        return bytes(found)
    finally:
        os.close(handle)


def _refuse_large(size: int, name: str, most: int, advice: str) -> None:
    if size > most:
        bound = f"{most >> 20} MiB" if most >= 1 << 20 else f"{most >> 10} KiB"
        shown = f" ({size} bytes)" if size > most + 1 else ""  # of a stream only a byte more than the bound is read
        raise InputError(f"{name}: larger than {bound}{shown}; {advice}")


def _decoded(data: bytes, name: str) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{name}: is not UTF-8 text") from None
    if "\0" in text:
        raise InputError(f"{name}: holds NUL bytes; it is binary")
    return text
