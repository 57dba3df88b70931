"""Brace expansion: `{a,b}`, `{1..8}` and `{a..c}` in a word make several words of it."""

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias

from glm_kvplan.launch.bash.syntax import Given, Part, Text
from glm_kvplan.launch.bash.values import missing

_NUMBERS = re.compile(r"(-?[0-9]+)\.\.(-?[0-9]+)(?:\.\.(-?[0-9]+))?")
_LETTERS = re.compile(r"([a-z])\.\.([a-z])(?:\.\.(-?[0-9]+))?|([A-Z])\.\.([A-Z])(?:\.\.(-?[0-9]+))?")
_MIXED = re.compile(r"[a-zA-Z]\.\.[a-zA-Z](?:\.\.-?[0-9]+)?")
_MOST = 1024
_DEEPEST = 40

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
    try:
        return [_parts(word) for word in _Braces(atoms).words(0, len(atoms))]
    except _NotKnown:
        return [(Given(missing("{...}")[0], True),)]


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


class _Braces:
    def __init__(self, atoms: list[_Atom]) -> None:
        self.atoms = atoms
        self.ends: dict[int, int] = {}  # of an opening brace
        self.commas: dict[int, list[int]] = {}  # that part its list
        opened: list[int] = []
        odd = False
        for at, atom in enumerate(atoms):
            if atom == "{":
                opened.append(at)
                self.commas[at] = []
            elif atom == "," and opened:
                self.commas[opened[-1]].append(at)
            elif atom == "}" and opened:
                self.ends[opened.pop()] = at
            elif atom == "}":
                odd = True
        text = "".join(atom if isinstance(atom, str) else " " for atom in atoms)
        if (odd or "{}" in text) and re.search(r"\{.*(?:,|\.\.)|,.*\}", text):
            raise _NotKnown  # bash has ways of its own with a brace too many, and with `{},`

    def words(self, start: int, end: int, depth: int = 0) -> list[list[_Atom]]:
        """What the atoms from `start` to `end` stand for."""
        if depth > _DEEPEST:
            raise _NotKnown
        found: list[list[_Atom]] = [[]]
        at = plain = start
        while at < end:
            closed = self.ends.get(at, end)
            options = self.options(at, closed, depth) if self.atoms[at] == "{" and closed < end else None
            if options is None:
                at += 1
                continue
            if len(found) * len(options) > _MOST:
                raise _NotKnown
            found = [[*one, *self.atoms[plain:at], *option] for one in found for option in options]
            at = plain = closed + 1
        return [[*one, *self.atoms[plain:end]] for one in found]

    def options(self, start: int, end: int, depth: int) -> list[list[_Atom]] | None:
        """What the braces at `start` and `end` choose from; None where they are plain text."""
        commas = self.commas[start]
        inside = self.atoms[start + 1 : end]
        if commas:
            if any(isinstance(atom, Text) for atom in inside):
                raise _NotKnown  # the quotes of {"a":1,"b":2} are more likely forgotten ones around it
            edges = [start, *commas, end]
            pairs = pairwise(edges)
            return [word for first, last in pairs for word in self.words(first + 1, last, depth + 1)]
        if not all(isinstance(atom, str) for atom in inside):
            return None
        text = "".join(atom for atom in inside if isinstance(atom, str))
        if ".." in text and "{" in text:
            raise _NotKnown
        numbers = _numbers(text)
        return None if numbers is None else [list[_Atom](one) for one in numbers]


def _numbers(text: str) -> list[str] | None:
    """The numbers or letters of a range; None where the text is none."""
    if match := _NUMBERS.fullmatch(text):
        if len(text) > 40:
            raise _NotKnown
        padded = any(re.match("-?0[0-9]", end) for end in match.group(1, 2))
        width = max(map(len, match.group(1, 2))) if padded else 0
        return [str(number).zfill(width) for number in _range(int(match[1]), int(match[2]), match[3])]
    if match := _LETTERS.fullmatch(text):
        first, last, step = match.group(1, 2, 3) if match[1] else match.group(4, 5, 6)
        return [chr(code) for code in _range(ord(first), ord(last), step)]
    if _MIXED.fullmatch(text):
        raise _NotKnown  # every character between Z and a
    return None


def _range(first: int, last: int, step: str | None) -> range:
    by = abs(int(step or 1)) or 1
    found = range(first, last + 1, by) if first <= last else range(first, last - 1, -by)
    if len(found) > _MOST:
        raise _NotKnown
    return found
