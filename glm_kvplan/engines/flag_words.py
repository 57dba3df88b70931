"""Flags as one would paste them into a shell."""

import shlex
from collections.abc import Mapping

from glm_kvplan.engines.flag import Flag, flag

_WIDTH = 74  # of a line in a terminal of 80 columns, less what continues and indents it
Flags = Mapping[str, Flag]  # an engine's flags by name


def flag_word(known: Flags, name: str, value: object) -> str:
    """`--tp-size 8`, `--enable-dp-attention`; empty for a switch that is off and has no spelling for it."""
    return (known.get(name) or flag(name, "str", None, "")).words(value)


def flag_lines(known: Flags, flags: Mapping[str, object], environment: Mapping[str, str] | None = None) -> str:
    """All flags, one a line and joined by backslashes; the environment's variables on a line of their own above."""
    words = [word for name, value in flags.items() if (word := flag_word(known, name, value))]
    text = " \\\n".join(words)
    return f"export {_switches(environment)}\n{text}" if environment else text


def command_lines(
    start: str, known: Flags, flags: Mapping[str, object], environment: Mapping[str, str], *more: str
) -> str:
    """A whole command: the environment's variables before it, how it starts, then flags and more words, as many a line
    as a terminal shows.
    """
    lines = [*filter(None, (_switches(environment), start))]
    begun = len(lines)
    for word in filter(None, (*(flag_word(known, name, value) for name, value in flags.items()), *more)):
        if len(lines) > begun and len(lines[-1]) + len(word) < _WIDTH:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return " \\\n  ".join(lines)


def _switches(environment: Mapping[str, str]) -> str:
    return " ".join(f"{name}={shlex.quote(value)}" for name, value in environment.items())
