"""The terminal: one rich console, plain when piped, at most as wide as the terminal."""

import sys
from functools import cache

from rich.console import Console


@cache
def console() -> Console:
    """Standard output. Colours are off in a pipe and under NO_COLOR (rich's own rules)."""
    return Console(highlight=False, soft_wrap=False)


def ascii_only() -> bool:
    """The terminal's encoding has no block characters."""
    try:
        "█▏".encode(sys.stdout.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return True
    return False
