"""Flags as one would paste them into a shell."""

import shlex
from collections.abc import Mapping
from textwrap import indent

from glm_kvplan.engines.flag import Flag, flag

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
    """A whole command: the environment's variables before it, how it starts, a flag a line, and more words."""
    lines = (_switches(environment), start, indent(flag_lines(known, flags), "  ").lstrip(), *more)
    return " \\\n  ".join(filter(None, lines))


def _switches(environment: Mapping[str, str]) -> str:
    return " ".join(f"{name}={shlex.quote(value)}" for name, value in environment.items())
