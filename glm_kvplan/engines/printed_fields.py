"""The fields of a mapping or call that a log prints, as Python writes them: `{'tp_size': 4, ...}`, `Args(tp_size=4)`.

Nothing is evaluated but plain literals, each on its own: one that cannot be read takes no other with it, a line that
was cut gives what came before the cut, and a value that nobody asks for is passed over where it stands.
"""

import ast
import re
from collections.abc import Iterator
from typing import NamedTuple

LONGEST_VALUE = 4096
_NAME = re.compile(r"\s*(?:'(\w{1,80})'|\"(\w{1,80})\")\s*:\s*|\s*(\w{1,80})=")
_OPEN, _CLOSE = "([{", ")]}"
_MARK = re.compile(r"['\"()\[\]{},]")
_WORDS = {"None": None, "True": True, "False": False}  # most values, and at once; then come
_SIMPLE = re.compile(r"(0|[1-9]\d{0,17})|'([\w ./:-]*)'", re.ASCII)


class Field(NamedTuple):
    """A field's name, and where its value stands in the text."""

    name: str
    start: int
    end: int


class Fields(NamedTuple):
    """The fields that stand whole, in order; `complete` says the mapping was not cut."""

    found: tuple[Field, ...]
    complete: bool


def fields_of(text: str, at: int) -> Fields:
    """The fields of the mapping or call whose opening bracket stands before `at`."""
    found: list[Field] = []
    while True:
        match = _NAME.match(text, at)
        if match is None:
            return Fields(tuple(found), text[at : at + 400].lstrip()[:1] in tuple(_CLOSE))
        end = _value_end(text, match.end())
        if end is None:
            return Fields(tuple(found), False)
        found.append(Field(match.group(1) or match.group(2) or match.group(3), match.end(), end))
        at = end + 1
        if text[end] != ",":
            return Fields(tuple(found), True)


def literal(text: str) -> object:
    """The value that a text of at most 4,096 characters writes. Raises ValueError where it is no literal."""
    text = text.strip()
    if text in _WORDS:
        return _WORDS[text]
    if simple := _SIMPLE.fullmatch(text):
        return simple[2] if simple[1] is None else int(simple[1])
    if len(text) > LONGEST_VALUE:
        raise ValueError("is too long")
    try:
        return ast.literal_eval(text)
    except (SyntaxError, MemoryError, RecursionError):
        raise ValueError("is no literal") from None


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


def _marks(text: str, start: int) -> Iterator[int]:
    return (match.start() for match in _MARK.finditer(text, start))


def _escaped(text: str, at: int) -> bool:
    """An odd number of backslashes stands before the quote."""
    before = at
    while before and text[before - 1] == "\\":
        before -= 1
    return (at - before) % 2 == 1
