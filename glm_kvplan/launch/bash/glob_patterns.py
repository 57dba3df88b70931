"""Patterns of `case`, `[[ == ]]` and `${name#pattern}` against text, in bounded time."""

from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

LONGEST = 2048  # characters that are matched: replacing takes time with their square


_CLASSES = {"digit": "0-9", "alpha": "a-zA-Z", "alnum": "0-9a-zA-Z", "space": " \t\n", "upper": "A-Z", "lower": "a-z"}


class Token(NamedTuple):
    """One step of a pattern: a kind ("char", "any", "star", "set") and what it takes."""

    kind: str
    chars: str = ""
    negated: bool = False


def pattern_of(parts: Iterable[tuple[str, bool]]) -> "Pattern":
    """The pattern given in parts (text, quoted); what is quoted stands for itself."""
    found: list[Token] = []
    for text, quoted in parts:
        at = 0
        while at < len(text):
            char = text[at]
            at += 1
            if quoted or char not in "*?[":
                found.append(Token("char", char))
            elif char == "*":
                if not found or found[-1].kind != "star":
                    found.append(Token("star"))
            elif char == "?":
                found.append(Token("any"))
            else:
                end = text.find("]", at + 1 if text[at : at + 1] not in ("!", "^") else at + 2)
                if end < 0:
                    found.append(Token("char", "["))
                    continue
                inside, at = text[at:end], end + 1
                negated = inside[:1] in ("!", "^")
                found.append(Token("set", _spelled(inside[negated:]), negated))
    return Pattern(found)


def _spelled(inside: str) -> str:
    """The characters of a set, ranges written out."""
    for name, chars in _CLASSES.items():
        inside = inside.replace(f"[:{name}:", chars)
    found, at = [], 0
    while at < len(inside):
        if inside[at + 1 : at + 2] == "-" and at + 2 < len(inside):
            first, last = ord(inside[at]), ord(inside[at + 2])
            found += [chr(code) for code in range(first, min(last, first + 512) + 1)]
            at += 3
        else:
            found.append(inside[at])
            at += 1
    return "".join(found)


class Pattern:
    """A pattern as an automaton: bit i of a state says that the first i steps have taken the text so far."""

    def __init__(self, steps: list[Token]) -> None:
        self.steps = steps
        self.stars = sum(1 << at for at, step in enumerate(steps) if step.kind == "star")
        self.accepts = 1 << len(steps)
        self.start = self.closed(1)
        self.masks: dict[str, int] = {}
        self.takes_everything = [step.kind for step in steps] == ["star"]

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
