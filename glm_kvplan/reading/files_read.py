"""Which files have been read since the command began: it writes over none of them."""

import os
from pathlib import Path

_READ: set[tuple[int, int]] = set()  # device and number: a file has many names


def note_read(found: os.stat_result) -> None:
    """A regular file is read."""
    _READ.add((found.st_dev, found.st_ino))


def was_read(path: Path) -> bool:
    """Whether `path`, links followed, is one of them."""
    try:
        found = path.stat()
    except OSError:
        return False
    return (found.st_dev, found.st_ino) in _READ


def forget_read() -> None:
    """Another command begins."""
    _READ.clear()
