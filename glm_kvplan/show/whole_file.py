"""Where an answer is written: standard output, or a file that is there whole or not at all. Every writer's one way.

A new file gets the permissions that the umask leaves; one that is replaced keeps its own, and is not replaced where
they forbid writing. A link stays a link: what it names is written.
"""

import errno
import glob
import os
import secrets
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from glm_kvplan.errors import InputError
from glm_kvplan.reading.files_read import was_read

_SURELY_LOCKED = 60.0  # seconds after which a file that somebody still writes has been locked
_ANYBODY = 0o222  # write permission of anyone


@contextmanager
def destination(
    path: str | None, *, binary: bool = False, partial: bool = False, replace: bool = True, option: str = "-o"
) -> Iterator[IO[Any]]:
    """A stream to write to. A file gets its name only when all is written: readers see the old one or the new one.

    With `partial`, Ctrl-C keeps the rows written so far in FILE.partial. Without `replace` a file that is there, or
    comes to be there meanwhile, stays. Raises InputError that names `option` where the file cannot be written.
    """
    if path is None or path == "-":
        stream = sys.stdout.buffer if binary else sys.stdout
        try:
            yield stream
        finally:
            stream.flush()
        return
    try:
        target = Path(path)
        if target.exists() and not target.is_file():  # a device or a pipe, which cannot be replaced
            with _stream(os.open(target, os.O_WRONLY), binary) as stream:
                yield stream
            return
        if target.exists() or target.is_symlink():
            if not replace:
                raise FileExistsError
            target = _behind_links(target)
        _refuse_what_is_read(target, path, option)
        mode = target.stat().st_mode & 0o777 if target.exists() else None
        if mode is not None and not (mode & _ANYBODY and os.access(target, os.W_OK)):
            raise PermissionError(errno.EACCES, "is read-only")
        unfinished, opened = _unfinished(target, binary)
        try:
            with opened:
                yield opened
                opened.flush()
                os.fsync(opened.fileno())
            _refuse_what_is_read(target, path, option)  # also while the answer was made
            if mode is not None:
                unfinished.chmod(mode)
            if replace:
                unfinished.replace(target)
            else:
                target.hardlink_to(unfinished)  # fails where another process has just written the file
        except KeyboardInterrupt:
            if partial:
                _keep(unfinished, target)  # raises another that says where they are
            raise
        finally:
            unfinished.unlink(missing_ok=True)
    except FileExistsError:
        raise InputError(f"{option} {path}: the file exists; give --force to replace it") from None
    except OSError as error:
        raise InputError(f"{option} {path}: cannot be written ({error.strerror})") from None


def _refuse_what_is_read(target: Path, path: str, option: str) -> None:
    if was_read(target):
        raise InputError(f"{option} {path}: the command reads this file; name another one to write to")


def _behind_links(target: Path) -> Path:
    try:
        return target.resolve()
    except RuntimeError:  # a ring of links, before Python 3.13
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP)) from None


def _unfinished(target: Path, binary: bool) -> tuple[Path, IO[Any]]:
    """A new file beside `target`, locked while it is written. What killed runs have left of theirs goes."""
    stem = f".{target.name[:100]}."
    _sweep(target.parent, stem)
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    path = target.with_name(f"{stem}{secrets.token_hex(8)}.part")
    handle = os.open(path, flags, 0o666)
    with suppress(OSError):
        _lock(handle)
    return path, _stream(handle, binary)


def _sweep(folder: Path, stem: str) -> None:
    for path in folder.glob(f"{glob.escape(stem)}*.part"):
        with suppress(OSError):
            handle = os.open(path, os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
            try:
                if time.time() - os.fstat(handle).st_mtime > _SURELY_LOCKED:
                    _lock(handle)
                    path.unlink()
            finally:
                os.close(handle)


def _lock(handle: int) -> None:
    """Raises OSError where another process writes the file, and where nothing can be locked."""
    try:
        from fcntl import LOCK_EX, LOCK_NB, flock
    except ImportError:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK)) from None
    flock(handle, LOCK_EX | LOCK_NB)


def _stream(handle: int, binary: bool) -> IO[Any]:
    if binary:
        return os.fdopen(handle, "wb")
    return os.fdopen(handle, "w", encoding="utf-8", newline="")


def _keep(unfinished: Path, target: Path) -> None:
    kept = target.with_name(f"{target.name}.partial")
    with suppress(OSError):
        unfinished.replace(kept)
        raise KeyboardInterrupt(f"stopped; the rows so far are in {kept}") from None
