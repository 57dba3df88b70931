"""The terminal: how wide it is, whether it shows colours and block characters, and what is written to it."""

import os
import shutil
import sys
from typing import Any, NamedTuple, TextIO

from glm_kvplan.show.printable import terminal_line

Piece = tuple[str, str]  # text that is printable already, and its tone
_STYLES = {
    "strong": "1",
    "muted": "2",
    "good": "32",
    "careful": "33",
    "bad": "1;31",
    "latent": "34",
    "index": "36",
    "states": "35",
    "other": "33",
    "free": "32",
    "alarm": "31",
    "loaded": "2",
}
# What a terminal without these marks shows in their place.
_PLAIN = str.maketrans({"→": "->", "…": "...", "×": "x", "±": "+-", "≥": ">=", "─": "-", "▶": ">", "█": "#", "–": "-"})


class Screen(NamedTuple):
    """Where lines go, `height` of them at once.

    `plain` ones show no block characters: their encoding has none, or they say they are dumb.
    """

    stream: TextIO
    width: int
    coloured: bool = False
    plain: bool = False
    height: int = 24

    def write(self, lines: "list[list[Piece]]") -> None:
        """Print lines of pieces; what the encoding lacks is replaced, an answer does not end for a mark."""
        for pieces in lines:
            self.stream.write(self._line(pieces) + "\n")

    def _line(self, pieces: list[Piece]) -> str:
        text = "".join(piece for piece, _ in pieces)
        if not self.coloured:
            return self._encodable(terminal_line(text.rstrip()))
        if terminal_line(text) != text:
            pieces = [(terminal_line(text), "")]
        return self._encodable("".join(_painted(piece, tone) for piece, tone in pieces))

    def _encodable(self, line: str) -> str:
        encoding = self.stream.encoding or "utf-8"
        if line.isascii() or _encodes(line, encoding):
            return line
        return line.translate(_PLAIN).encode(encoding, "replace").decode(encoding)


def screen(stream: TextIO | None = None) -> Screen:
    """Standard output, or a file as wide as the terminal. NO_COLOR and FORCE_COLOR are heard."""
    out = sys.stdout if stream is None else stream
    if not os.environ.get("NO_COLOR"):
        coloured = bool(os.environ.get("FORCE_COLOR")) or (out.isatty() and not _dumb(out))
    else:
        coloured = False
    plain = _dumb(out) or not _encodes("█▏", getattr(out, "encoding", None) or "utf-8")
    size = shutil.get_terminal_size()
    return Screen(out, max(size.columns, 20), coloured, plain, max(size.lines, 24))


def progress_console() -> Any:
    """A rich console on standard error, for bars of progress: what it prints is data, no markup and no emoji."""
    from rich.console import Console

    return Console(stderr=True, markup=False, emoji=False, highlight=False)


def _painted(text: str, tone: str) -> str:
    style = _STYLES.get(tone)
    return f"\x1b[{style}m{text}\x1b[0m" if style and text.strip() else text


def _encodes(marks: str, encoding: str) -> bool:
    try:
        marks.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _dumb(stream: TextIO) -> bool:
    """A terminal without capabilities. A pipe is not one, whatever TERM says."""
    return stream.isatty() and os.environ.get("TERM", "").lower() in ("dumb", "unknown")
