"""A user's text file read whole, with its guard up: bounded, UTF-8, no binary."""

import sys
from pathlib import Path

from glm_kvplan.errors import InputError


def read_text(path: str | Path, name: str, *, most: int, what: str) -> str:
    """The text of a file, a byte-order mark left out. `name` says in messages which file, `what` of what kind it is.

    Raises InputError for a file that cannot be read, is larger than `most` bytes, or is not UTF-8 text.
    """
    try:
        with Path(path).open("rb") as file:
            data = file.read(most + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise InputError(f"{name}: cannot be read: {reason}") from None
    return _decoded(data, name, most, what)


def read_stdin(name: str, *, most: int, what: str) -> str:
    """The text on standard input; as `read_text`."""
    if sys.stdin is None:
        raise InputError(f"{name}: standard input is closed")
    return _decoded(sys.stdin.buffer.read(most + 1), name, most, what)


def _decoded(data: bytes, name: str, most: int, what: str) -> str:
    if len(data) > most:
        raise InputError(f"{name}: larger than {most >> 20} MiB; {what} is a few KiB")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{name}: not UTF-8 text") from None
    if "\0" in text:
        raise InputError(f"{name}: holds NUL bytes; it is binary")
    return text
