"""Brace expansion: `{a,b}` and `{1..8}` in a word make several words of it; braces within braces are not read."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias

from glm_kvplan.launch.bash.syntax import Given, Part, Text
from glm_kvplan.launch.bash.values import missing

_GROUP = re.compile(r"\{([^{}]+)\}")
_NUMBERS = re.compile(r"(-?[0-9]{1,9})\.\.(-?[0-9]{1,9})(?:\.\.(-?[0-9]{1,9}))?")
_LETTERS = re.compile(r"[a-zA-Z]\.\.[a-zA-Z](?:\.\.-?[0-9]+)?")
_MOST = 1024

_Atom: TypeAlias = str | Part  # a character, or what is quoted or substituted


class _NotKnown(Exception):
    """Too many words, or braces that are not read here."""


def with_braces(parts: tuple[Part, ...]) -> list[tuple[Part, ...]]:
    """The words' parts that braces make of one word's. Lists in braces that hold quoted text are not read."""
    if not any(isinstance(part, Text) and not part.quoted and "{" in part.text for part in parts):
        return [parts]
    atoms: list[_Atom] = []
    for part in parts:
        atoms += part.text if isinstance(part, Text) and not part.quoted else [part]
    text = "".join(atom if isinstance(atom, str) else "\0" for atom in atoms)
    after = text.partition("{")[2]
    if "," not in after and ".." not in after:
        return [parts]
    try:
        if {"{", "}"} & set(_GROUP.sub("", text)):
            raise _NotKnown  # bash has ways of its own with a brace too many, and with `{},`
        return [_parts(word) for word in _words(atoms, text)]
    except _NotKnown:
        return [(Given(missing("{...}")[0], False),)]


def _parts(atoms: Sequence[_Atom]) -> tuple[Part, ...]:
    found: list[Part] = []
    for atom in atoms:
        last = found[-1] if found else None
        if not isinstance(atom, str):
            found.append(atom)
        elif isinstance(last, Text) and not last.quoted:
            found[-1] = Text(last.text + atom, False)
        else:
            found.append(Text(atom, False))
    return tuple(found)


def _words(atoms: Sequence[_Atom], text: str) -> list[list[_Atom]]:
    found: list[list[_Atom]] = [[]]
    done = 0
    for group in _GROUP.finditer(text):
        options = _options(atoms[group.start(1) : group.end(1)], group[1])
        if options is not None:
            if len(found) * len(options) > _MOST:
                raise _NotKnown
            found = [[*one, *atoms[done : group.start()], *option] for one in found for option in options]
            done = group.end()
    return [[*one, *atoms[done:]] for one in found]


def _options(atoms: Sequence[_Atom], text: str) -> Sequence[Sequence[_Atom]] | None:
    """What braces choose from; None where they are plain text."""
    if "," in text:
        if any(isinstance(atom, Text) for atom in atoms):
            raise _NotKnown  # the quotes of {"a":1,"b":2} are more likely forgotten ones around it
        edges = [-1, *(at for at, char in enumerate(text) if char == ","), len(text)]
        return [atoms[first + 1 : last] for first, last in pairwise(edges)]
    if _LETTERS.fullmatch(text):
        raise _NotKnown
    match = _NUMBERS.fullmatch(text)
    if match is None:
        return None
    first, last, by = int(match[1]), int(match[2]), abs(int(match[3] or 1)) or 1
    numbers = range(first, last + 1, by) if first <= last else range(first, last - 1, -by)
    if len(numbers) > _MOST:
        raise _NotKnown
    ends = match.group(1, 2)
    width = max(map(len, ends)) * any(re.match("-?0[0-9]", end) for end in ends)
    return [str(number).zfill(width) for number in numbers]
