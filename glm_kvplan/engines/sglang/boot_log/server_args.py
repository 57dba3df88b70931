"""The engine's `server_args=...` line: a mapping of some 500 fields, of which those of the table of flags are kept.

Nothing is evaluated but plain literals, and a field that is not in the table is dropped where it is read:
keys, passwords and tokens never reach a variable that outlives the scan.
"""

import ast
import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from glm_kvplan.engines.flag import Flag
from glm_kvplan.engines.sglang.flags import TABLE
from glm_kvplan.errors import InputError
from glm_kvplan.reading.secret_words import public

# The fields that are kept: the table of flags says which of them bear on memory.
_ROWS = {row.name: row for row in TABLE if row.printed and row.role in ("flag", "named")}
KEPT = frozenset(_ROWS)

LONGEST_VALUE = 4096
_NAME = re.compile(r"\s*(?:'(\w{1,80})'|\"(\w{1,80})\")\s*:\s*|\s*(\w{1,80})=")
_OPEN, _CLOSE = "([{", ")]}"


class ServerArguments(NamedTuple):
    """What was kept. `names` holds every field's name, never a value; `complete` says the line was not cut."""

    values: dict[str, object]
    names: frozenset[str]
    complete: bool


def parse(text: str) -> ServerArguments | None:
    """The arguments in `text`, which starts at `{` or `ServerArgs(`; None where it starts with neither.

    Both printed forms are read: `{'tp_size': 4, ...}` of releases 0.5.20 to 0.5.23 and `ServerArgs(tp_size=4, ...)`.
    Values are literals or are dropped. A line that was cut gives what came before the cut.
    """
    opening = re.match(r"\{|ServerArgs\(", text)
    if opening is None:
        return None
    values: dict[str, object] = {}
    names: set[str] = set()
    at = opening.end()
    while True:
        match = _NAME.match(text, at)
        if match is None:
            return ServerArguments(values, frozenset(names), text[at:].lstrip()[:1] in tuple(_CLOSE))
        end = _value_end(text, match.end())
        if end is None:
            return ServerArguments(values, frozenset(names), False)
        name = match.group(1) or match.group(2) or match.group(3)
        names.add(name)
        if name in KEPT:
            _keep(values, name, text[match.end() : end])
        at = end + 1
        if text[end] != ",":
            return ServerArguments(values, frozenset(names), True)


def from_mapping(data: Mapping[str, object]) -> ServerArguments:
    """The same from a JSON object, as /server_info gives it."""
    values: dict[str, object] = {}
    for name, value in data.items():
        if name in KEPT and _plain(_ROWS[name], value):
            values[name] = public(value)
    return ServerArguments(values, frozenset(data), True)


_WORDS = {"None": None, "True": True, "False": False}  # most values, and at once


def _keep(values: dict[str, object], name: str, text: str) -> None:
    if len(text) > LONGEST_VALUE:
        return
    try:
        text = text.strip()
        value = _WORDS[text] if text in _WORDS else ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return
    if _plain(_ROWS[name], value):
        values[name] = public(value)


def _plain(row: Flag, value: object) -> bool:
    """A value that the flag can have: a list or a mapping only where it takes one."""
    wide = {"ints": list, "json": dict}.get(row.kind)
    return isinstance(value, str | int | float | bool) or (wide is not None and isinstance(value, wide))


def _value_end(text: str, start: int) -> int | None:
    """Where the value that starts at `start` ends: its comma, or the closing bracket of the whole. None: it was cut."""
    depth, quote, at = 0, "", start
    for at in _marks(text, start):
        mark = text[at]
        if quote:
            if mark == quote and not _escaped(text, at):
                quote = ""
        elif mark in "'\"":
            quote = mark
        elif mark in _OPEN:
            depth += 1
        elif mark in _CLOSE:
            if depth == 0:
                return at
            depth -= 1
        elif depth == 0:
            return at
    return None


_MARK = re.compile(r"['\"()\[\]{},]")


def _marks(text: str, start: int) -> Iterator[int]:
    return (match.start() for match in _MARK.finditer(text, start))


def _escaped(text: str, at: int) -> bool:
    """An odd number of backslashes stands before the quote."""
    before = at
    while before and text[before - 1] == "\\":
        before -= 1
    return (at - before) % 2 == 1


def require_model(arguments: Mapping[str, object]) -> None:
    """Raises InputError where the arguments name no tensor-parallel width, which every server has."""
    if "tp_size" not in arguments:
        raise InputError(
            "the server's arguments name no tp_size: where the line is cut, give the launch command after -- or with "
            "--launch FILE; else, is this an SGLang server of release 0.5.20 or later?"
        )
