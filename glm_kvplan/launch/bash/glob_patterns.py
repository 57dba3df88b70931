"""Patterns of `case`, `[[ == ]]` and `${name#pattern}` against text, as regular expressions in bounded time."""

import re
import string
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

LONGEST = 2048  # characters that are matched: replacing takes time with their square
_GRAPH = string.digits + string.ascii_letters + string.punctuation
CLASSES = {
    **{"digit": string.digits, "lower": string.ascii_lowercase, "upper": string.ascii_uppercase},
    **{"alpha": string.ascii_letters, "alnum": string.digits + string.ascii_letters, "xdigit": string.hexdigits},
    **{"word": string.digits + string.ascii_letters + "_", "space": " \t\n\v\f\r", "blank": " \t"},
    **{"graph": _GRAPH, "print": " " + _GRAPH, "punct": string.punctuation},
    "cntrl": "".join(map(chr, [*range(32), 127])),
}
_Char: TypeAlias = tuple[str, bool]  # a character, and whether it is quoted


class Pattern:
    """A pattern's steps: the expression of a character each, None for `*`. Given in parts (text, quoted)."""

    def __init__(self, parts: Iterable[tuple[str, bool]]) -> None:
        self.steps: list[str | None] = []
        # `${X/[!]]/Q}` finds nothing in bash, though `[!]]` matches elsewhere.
        self.odd_inside = False
        chars = list(_characters(parts))
        at = 0
        while at < len(chars):
            char, quoted = chars[at]
            at += 1
            if quoted or char not in "*?[":
                self.steps.append(re.escape(char))
            elif char == "*":
                self.steps += [None] if not self.steps or self.steps[-1] is not None else []
            elif char == "?":
                self.steps.append(".")
            elif one := set_in(chars, at, "!^"):
                at, expression = one
                self.steps.append(expression)
                self.odd_inside |= expression.startswith("[^") and r"\]" in expression
            else:
                self.steps.append(r"\[")
        self.takes_everything = self.steps == [None]

    def expression(self, longest: bool, backwards: bool = False) -> re.Pattern[str]:
        """What takes as much as it can, or as little. Every `*` but the last is content with the nearest place."""
        between: list[str] = [""]
        for step in self.steps[::-1] if backwards else self.steps:
            if step is None:
                between.append("")
            else:
                between[-1] += step
        first, *middle = between
        last = [f".*{middle.pop()}"] if middle and longest else []
        return re.compile("".join((first, *(f"(?>.*?{text})" for text in middle), *last)), re.DOTALL)

    def matches(self, text: str) -> bool:
        """Whether the whole text fits."""
        return self.expression(True).fullmatch(text) is not None

    def taken(self, text: str, longest: bool, backwards: bool = False) -> int | None:
        """How many characters at the start, or at the end, fit; None where the pattern does not."""
        match = self.expression(longest, backwards).match(text[::-1] if backwards else text)
        return match and match.end()

    def without_start(self, text: str, longest: bool) -> str:
        """`${name#pattern}`, `##` with `longest`."""
        return text[self.taken(text, longest) or 0 :]

    def without_end(self, text: str, longest: bool) -> str:
        """`${name%pattern}`, `%%` with `longest`."""
        return text[: len(text) - (self.taken(text, longest, backwards=True) or 0)]

    def replaced(self, text: str, other: str, how: str) -> str:
        """`${name/pattern/other}`; `how` is "/", "//" for every place, "/#" for the start, "/%" for the end."""
        if not text or how in ("/#", "/%"):  # there alone nothing is matched too: `${list[@]/#/--}` puts words in front
            length = self.taken(text, True, how == "/%")
            if length is None or (not self.steps and how in ("/", "//")):
                return text
            return text[: len(text) - length] + other if how == "/%" else other + text[length:]
        expression = self.expression(True)
        found, at = [], 0
        while at < len(text):
            match = expression.match(text, at)
            if match is not None and match.end() > at:
                found.append(other)
                at = match.end()
                if how != "//":
                    break
            else:
                found.append(text[at])
                at += 1
        return "".join(found) + text[at:]


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


def set_in(chars: Sequence[_Char], at: int, negations: str) -> tuple[int, str] | None:
    """Where the set ends whose bracket stands before `at`, and its expression; None for one that is never closed."""
    negated = at < len(chars) and not chars[at][1] and chars[at][0] in negations
    at += negated
    first = at
    taken = ""
    while at < len(chars) and (chars[at] != ("]", False) or at == first):
        name = re.match(r"\[:([a-z]+):\]", "".join("\0" if quoted else char for char, quoted in chars[at : at + 12]))
        if name is not None:
            taken += CLASSES.get(name[1], "")
            at += name.end()
        elif at + 2 < len(chars) and chars[at + 1] == ("-", False) and chars[at + 2] != ("]", False):
            start, end = ord(chars[at][0]), ord(chars[at + 2][0])
            taken += "".join(map(chr, range(start, min(end, start + 512) + 1)))
            at += 3
        else:
            taken += chars[at][0]
            at += 1
    escaped = "".join("\\" + char if char in "\\]^-[&~|" else char for char in taken)
    expression = f"[{'^' * negated}{escaped}]" if taken else "." if negated else "(?!)"
    return (at + 1, expression) if at < len(chars) else None
