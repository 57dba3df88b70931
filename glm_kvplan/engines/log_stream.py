"""A log file as lines: plain or gzip, a file or standard input, in pieces of constant size."""

import os
import sys
import zlib
from codecs import BOM_UTF8, getincrementaldecoder
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from types import TracebackType
from typing import IO

from glm_kvplan.engines.log_records import LONGEST_LINE
from glm_kvplan.errors import InputError
from glm_kvplan.reading.files_read import note_read

PIECE = 1 << 18
_GZIP = b"\x1f\x8b"
_GZIP_WINDOW = 31  # zlib: read gzip headers
_UTF16 = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
_MOST_NULS = 64  # at the beginning: a few may stand in somebody's prompt
_TEXT_CONTROL = frozenset(b"\t\n\r\x1b\x08\x0c")


class Progress:
    """Bytes read, on standard error where that is a terminal; nothing for what is read at once."""

    STEP = 64 << 20

    def __init__(self, path: str) -> None:
        self.path, self.shown = path, 0

    def __enter__(self) -> "Progress":
        return self

    def __call__(self, read: int) -> None:
        if read - self.shown < self.STEP or not sys.stderr.isatty():
            return
        self.shown = read
        print(f"\rkvplan: {self.path}: {read / 1e9:.2f} GB read", end="", file=sys.stderr, flush=True)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.shown:
            print(file=sys.stderr)


def read_file(path: str, anchors: Iterable[str], progress: Callable[[int], None] | None = None) -> Iterator[bytes]:
    """The lines of `path` ("-": standard input) that may matter; long stretches without one of `anchors` are skipped.

    `progress` is called with the bytes read so far, piece by piece. A file that ends early (a gzip that was cut) gives
    what it holds. Raises InputError for a file that cannot be read or is not text.
    """
    wanted = tuple(anchor.encode() for anchor in anchors)
    if path == "-":
        if sys.stdin is None:
            raise InputError(f"{path}: standard input is closed")
        yield from _lines(wanted, _pieces(sys.stdin.buffer, "standard input", progress))
        return
    try:
        file = Path(path).open("rb")  # noqa: SIM115 (closed below)
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({getattr(error, 'strerror', None) or error})") from None
    with file:
        note_read(os.fstat(file.fileno()))
        yield from _lines(wanted, _pieces(file, path, progress))


def _pieces(raw: IO[bytes], name: str, progress: Callable[[int], None] | None) -> Iterator[bytes]:
    read = 0
    decode: Callable[[bytes], str] | None = None
    for piece in _unpacked(_raw(raw, name), name):
        if not read:
            piece = piece.removeprefix(BOM_UTF8)
            encoding = _UTF16.get(piece[:2])
            if encoding is None:
                _require_text(piece, name)
            else:
                decode = getincrementaldecoder(encoding)("replace").decode
                piece = piece[2:]
        read += len(piece)
        if piece and progress is not None:
            progress(read)
        yield piece if decode is None else decode(piece).encode()


def _raw(raw: IO[bytes], name: str) -> Iterator[bytes]:
    try:
        while piece := raw.read(PIECE):
            yield piece
    except OSError as error:
        raise InputError(f"{name}: cannot be read ({error.strerror or error})") from None


def _unpacked(pieces: Iterator[bytes], name: str) -> Iterator[bytes]:
    """The pieces, unpacked where they are gzip: one member after another, and what there is of a last one."""
    first = next(pieces, b"")
    if not first.startswith(_GZIP):
        if first:
            yield first
        yield from pieces
        return
    packed = first
    member = zlib.decompressobj(_GZIP_WINDOW)
    try:
        while packed:
            piece = member.decompress(packed, PIECE)
            if piece:
                yield piece
            packed = member.unconsumed_tail or member.unused_data or next(pieces, b"")
            if member.eof:
                if len(packed) < len(_GZIP):
                    packed += next(pieces, b"")
                if not packed.startswith(_GZIP):
                    return  # padding behind the last member
                member = zlib.decompressobj(_GZIP_WINDOW)
        yield member.flush()  # the file was cut: what the unpacker still holds of it
    except zlib.error:
        raise InputError(f"{name}: starts like a gzip file but is not one, or is damaged") from None


def _require_text(piece: bytes, name: str) -> None:
    odd = sum(1 for byte in piece[:4096] if byte < 32 and byte not in _TEXT_CONTROL)
    if piece.count(0, 0, 65536) > _MOST_NULS or odd > len(piece[:4096]) // 10:
        raise InputError(f"{name}: is binary data, not a log; give the server's text output (gzip is read as it is)")


def _lines(anchors: tuple[bytes, ...], pieces: Iterator[bytes]) -> Iterator[bytes]:
    """Whole lines of the pieces around boot messages; of a longer line than any the engine writes, its start."""
    rest = b""
    wanted = False  # the piece before this one held a message: a line it began may go on here
    for piece in pieces:
        piece = rest + piece
        cut = piece.rfind(b"\n") + 1
        if not cut and len(piece) < LONGEST_LINE:
            rest = piece
            continue
        whole, rest = piece[:cut], piece[cut:][:LONGEST_LINE]
        here = any(anchor in whole for anchor in anchors)
        if here or wanted:
            yield from whole.splitlines()
        wanted = here
    if rest:
        yield rest
