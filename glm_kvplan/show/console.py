"""The terminal: one rich console, plain when piped, at most as wide as the terminal."""

import io
import os
import shutil
import sys
from functools import cache
from typing import Any

from rich.console import Console

HEADROOM_STYLE = {"fits": "green", "tight": "yellow", "short": "red"}  # by sizing.headroom's verdict


@cache
def console() -> Console:
    """Standard output. Colours are off in a pipe and under NO_COLOR (rich's own rules)."""
    if isinstance(sys.stdout, io.TextIOWrapper) and not _encodes("…→×±≥"):
        sys.stdout.reconfigure(errors="replace")  # a mark the encoding lacks must not end the answer
    made = DataConsole()
    if _dumb() or made.width < 1:  # rich takes a dumb terminal to be 80 columns wide, and COLUMNS=0 at its word
        size = shutil.get_terminal_size()
        return DataConsole(width=size.columns, height=size.lines)
    return made


class DataConsole(Console):
    """A console that prints text as it is: a path or a note is data, `[v1]` in it no style and `:x:` no picture."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **settings)

    def on_broken_pipe(self) -> None:
        """Let the error through: rich would exit with code 1, which is an answer here."""
        raise


def ascii_only() -> bool:
    """The terminal cannot show block characters: its encoding has none, or it says of itself that it is dumb."""
    return _dumb() or not _encodes("█▏")


def _encodes(marks: str) -> bool:
    try:
        marks.encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _dumb() -> bool:
    """A terminal without capabilities. A pipe is not one, whatever TERM says."""
    return sys.stdout.isatty() and os.environ.get("TERM", "").lower() in ("dumb", "unknown")
