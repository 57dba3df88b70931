"""Patterns of `case`, `[[ == ]]` and `${name#pattern}` against text, in bounded time."""

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, TypeAlias

LONGEST = 2048  # characters that are matched: replacing takes time with their square
_SMALL, _CAPITAL, _DIGITS = "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "0123456789"
_GRAPH = "".join(map(chr, range(33, 127)))
CLASSES = {
    **{"digit": _DIGITS, "lower": _SMALL, "upper": _CAPITAL, "alpha": _SMALL + _CAPITAL},
    **{
        "alnum": _SMALL + _CAPITAL + _DIGITS,
        "word": _SMALL + _CAPITAL + _DIGITS + "_",
        "xdigit": _DIGITS + "abcdefABCDEF",
    },
    **{"space": " \t\n\v\f\r", "blank": " \t", "graph": _GRAPH, "print": " " + _GRAPH},
    "punct": "".join(char for char in _GRAPH if not char.isalnum()),
    "cntrl": "".join(map(chr, [*range(32), 127])),
}
_Char: TypeAlias = tuple[str, bool]  # a character, and whether it is quoted


class Token(NamedTuple):
    """One step of a pattern: a kind ("char", "any", "star", "set") and what it takes."""

    kind: str
    chars: str = ""
    negated: bool = False


def pattern_of(parts: Iterable[tuple[str, bool]]) -> "Pattern":
    """The pattern given in parts (text, quoted); what is quoted stands for itself."""
    chars = list(_characters(parts))
    found: list[Token] = []
    at = 0
    while at < len(chars):
        char, quoted = chars[at]
        at += 1
        if quoted or char not in "*?[":
            found.append(Token("char", char))
        elif char == "*":
            if not found or found[-1].kind != "star":
                found.append(Token("star"))
        elif char == "?":
            found.append(Token("any"))
        elif one := _set(chars, at):
            at, token = one
            found.append(token)
        else:
            found.append(Token("char", "["))
    return Pattern(found)


def _characters(parts: Iterable[tuple[str, bool]]) -> Iterator[_Char]:
    escaped = False
    for text, quoted in parts:
        for char in text:
            if char == "\\" and not quoted and not escaped:
                escaped = True  # a backslash that a value has brought in
                continue
            yield char, quoted or escaped
            escaped = False
    if escaped:
        yield "\\", True


def _set(chars: Sequence[_Char], at: int) -> tuple[int, Token] | None:
    """The set whose bracket stands before `at`, and where it ends; None where it has no end."""
    negated = at < len(chars) and chars[at] in (("!", False), ("^", False))
    at += negated
    first = at
    takes: list[str] = []
    while at < len(chars) and (chars[at] != ("]", False) or at == first):
        name = _class(chars, at)
        if name is not None:
            takes.append(CLASSES.get(name, ""))
            at += len(name) + 4
        elif at + 2 < len(chars) and chars[at + 1] == ("-", False) and chars[at + 2] != ("]", False):
            start, end = ord(chars[at][0]), ord(chars[at + 2][0])
            takes += [chr(code) for code in range(start, min(end, start + 512) + 1)]
            at += 3
        else:
            takes.append(chars[at][0])
            at += 1
    return (at + 1, Token("set", "".join(takes), negated)) if at < len(chars) else None


def _class(chars: Sequence[_Char], at: int) -> str | None:
    """`name` where `[:name:]` starts here."""
    if chars[at : at + 2] != [("[", False), (":", False)]:
        return None
    match = re.match(r"\[:([a-z]+):\]", "".join(char for char, _ in chars[at : at + 12]))
    return match and match[1]


class Pattern:
    """A pattern as an automaton: bit i of a state says that the first i steps have taken the text so far."""

    def __init__(self, steps: list[Token]) -> None:
        self.steps = steps
        self.stars = sum(1 << at for at, step in enumerate(steps) if step.kind == "star")
        self.accepts = 1 << len(steps)
        self.start = self.closed(1)
        self.masks: dict[str, int] = {}
        self.takes_everything = [step.kind for step in steps] == ["star"]
        # `${X/[!]]/Q}` finds nothing in bash, though `[!]]` matches elsewhere.
        self.odd_inside = any(step.kind == "set" and step.negated and "]" in step.chars for step in steps)

    def closed(self, state: int) -> int:
        return state | (state & self.stars) << 1  # no two stars stand side by side

    def mask(self, char: str) -> int:
        found = self.masks.get(char)
        if found is None:
            found = self.masks[char] = sum(1 << at for at, step in enumerate(self.steps) if _takes(step, char))
        return found

    def ends(self, text: str, start: int = 0) -> Iterator[int]:
        """Where the pattern may end when it starts at `start`, ascending."""
        state = self.start
        at = start
        while state:
            if state & self.accepts:
                yield at
            if at == len(text):
                return
            state = self.closed((state & self.mask(text[at])) << 1 | state & self.stars)
            at += 1

    def matches(self, text: str) -> bool:
        """Whether the whole text fits."""
        return deque(self.ends(text), 1) == deque((len(text),))

    def without_start(self, text: str, longest: bool) -> str:
        """`${name#pattern}`, `##` with `longest`."""
        ends = self.ends(text)
        end = max(ends, default=0) if longest else next(ends, 0)
        return text[end:]

    def without_end(self, text: str, longest: bool) -> str:
        """`${name%pattern}`, `%%` with `longest`."""
        backwards = Pattern(self.steps[::-1])
        return backwards.without_start(text[::-1], longest)[::-1]

    def replaced(self, text: str, other: str, how: str) -> str:
        """`${name/pattern/other}`; `how` is "/", "//" for every place, "/#" for the start, "/%" for the end."""
        if not text or how in ("/#", "/%"):  # there alone nothing is matched too: `${list[@]/#/--}` puts words in front
            if not self.steps and how in ("/", "//"):
                return text
            if how == "/%":
                ends = (at for at in range(len(text) + 1) if deque(self.ends(text, at), 1) == deque((len(text),)))
                start = next(ends, None)
                return text if start is None else text[:start] + other
            stop = max(self.ends(text), default=None)
            return text if stop is None else other + text[stop:]
        found, at = [], 0
        while at < len(text):
            end = max(self.ends(text, at), default=at)
            if end > at:
                found.append(other)
                at = end
                if how != "//":
                    break
            else:
                found.append(text[at])
                at += 1
        return "".join(found) + text[at:]


def _takes(step: Token, char: str) -> bool:
    if step.kind == "char":
        return step.chars == char
    return step.kind == "any" or (step.kind == "set" and (char in step.chars) != step.negated)
