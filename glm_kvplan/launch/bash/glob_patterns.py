"""Patterns of `case`, `[[ == ]]` and `${name#pattern}` against text, as regular expressions in bounded time."""

import re
import string
from collections.abc import Iterable

LONGEST = 2048  # characters that are matched: replacing takes time with their square
_GRAPH = string.digits + string.ascii_letters + string.punctuation
_CLASSES = {
    **{"digit": string.digits, "lower": string.ascii_lowercase, "upper": string.ascii_uppercase},
    **{"alpha": string.ascii_letters, "alnum": string.digits + string.ascii_letters, "xdigit": string.hexdigits},
    **{"word": string.digits + string.ascii_letters + "_", "space": " \t\n\v\f\r", "blank": " \t"},
    **{"graph": _GRAPH, "print": " " + _GRAPH, "punct": string.punctuation},
    "cntrl": "".join(map(chr, [*range(32), 127])),
}
_SET = re.compile(r"((?>\]?(?:\[:[a-z]+:\]|[^\]])*))\]")
_MEMBER = re.compile(r"\[:([a-z]+):\]|.-.|.", re.DOTALL)


class Pattern:
    """A pattern's steps: the expression of a character each, None for `*`. Given in parts (text, quoted)."""

    def __init__(self, parts: Iterable[tuple[str, bool]]) -> None:
        self.steps: list[str | None] = []
        text, plain = _characters(parts)
        # `${X/[!]]/Q}` finds nothing in bash, though `[!]]` matches elsewhere.
        self.odd_inside = re.search(r"\[[!^]\]", plain) is not None
        at = 0
        while at < len(text):
            char = plain[at]
            at += 1
            if char == "*":
                self.steps.append(None)
            elif char == "?":
                self.steps.append(".")
            elif char == "[" and (one := set_in(text, plain, at, ("!", "^"))):
                at, expression = one
                self.steps.append(expression)
            else:
                self.steps.append(re.escape(text[at - 1]))
        self.takes_everything = set(self.steps) == {None}

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


def _characters(parts: Iterable[tuple[str, bool]]) -> tuple[str, str]:
    """A pattern's text, and the same with "\\0" for each character that stands for itself."""
    text = plain = ""
    escaped = False
    for part, quoted in parts:
        for char in part:
            if char == "\\" and not quoted and not escaped:
                escaped = True  # a backslash that a value has brought in
                continue
            text += char
            plain += "\0" if quoted or escaped else char
            escaped = False
    return (text + "\\", plain + "\0") if escaped else (text, plain)


def set_in(text: str, plain: str, at: int, negations: tuple[str, ...]) -> tuple[int, str] | None:
    """Where the set ends whose bracket stands before `at`, and its expression; None for one that is never closed.

    `plain` is the text with "\\0" for what is quoted.
    """
    negated = plain.startswith(negations, at)
    whole = _SET.match(plain, at + negated)
    if whole is None:
        return None
    taken = ""
    for one in _MEMBER.finditer(plain, *whole.span(1)):
        first, last = text[one.start()], text[one.end() - 1]
        if one[1]:
            taken += re.escape(_CLASSES.get(one[1], ""))
        elif first <= last:
            taken += f"{re.escape(first)}-{re.escape(last)}"
    return whole.end(), f"[{'^' * negated}{taken}]" if taken else "." if negated else "(?!)"
