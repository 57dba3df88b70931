"""`[[ text =~ expression ]]`: expressions that Python's answers as bash's do, in bounded time."""

import re
from collections.abc import Iterable

from glm_kvplan.launch.bash.glob_patterns import CLASSES

_SET = re.compile(r"\[\^?\]?(?:\[:[a-z]+:\]|[^\]\[\\])*\]")
_REPEAT = re.compile(r"[*+?]|\{[0-9]{1,2}(?:,[0-9]{0,2})?\}")
_LONGEST, _MOST_REPEATS = 200, 3  # tried in turn they take time with the text's length to the power of the repeats
_LONGEST_WITH_ONE = 1000


class NotRead(Exception):
    """An expression that is not worked out here."""


def groups_of(parts: Iterable[tuple[str, bool]], text: str) -> tuple[str, ...] | None:
    """What the whole expression and its groups match; None where it does not match. Raises NotRead.

    `parts` are (text, quoted); what is quoted stands for itself.
    """
    expression, repeats = "", 0
    for part, quoted in parts:
        found, number = (re.escape(part), 0) if quoted else _translated(part)
        expression += found
        repeats += number
    if len(text) > (_LONGEST if repeats > 1 else _LONGEST_WITH_ONE) or repeats > _MOST_REPEATS or "\n" in text:
        raise NotRead
    try:
        match = re.search(expression, text, re.ASCII | re.DOTALL)
    except re.error:
        raise NotRead from None
    if match is None:
        return None
    if "|" in expression and match.re.groups:
        return ()  # bash takes the longest alternative, Python the first: what the groups hold may differ
    return (match[0], *(group or "" for group in match.groups()))


def _translated(text: str) -> tuple[str, int]:
    """An expression's text for Python, and how many repeats are in it."""
    found: list[str] = []
    at = repeats = 0
    while at < len(text):
        char = text[at]
        if match := _SET.match(text, at):
            found.append(_set(match[0]))
            at = match.end()
        elif match := _REPEAT.match(text, at):
            if not found or found[-1] in "^|($*" or (found[-1] == ")" and repeats):
                raise NotRead  # of nothing, or of what repeats itself
            found.append(match[0])
            repeats += 1
            at = match.end()
            if _REPEAT.match(text, at):
                raise NotRead
        elif char == "\\":
            if at + 1 == len(text) or text[at + 1].isalnum():
                raise NotRead
            found.append(re.escape(text[at + 1]))
            at += 2
        elif char in "[]{}":
            raise NotRead
        else:
            found.append(r"\Z" if char == "$" else char if char in "^.|()" else re.escape(char))
            at += 1
    return "".join(found), repeats


def _set(text: str) -> str:
    def named(match: re.Match[str]) -> str:
        if match[1] not in CLASSES:
            raise NotRead
        return re.escape(CLASSES[match[1]])

    start = 2 if text.startswith("[^") else 1
    return (
        text[:start]
        + re.sub(r"\[:([a-z]+):\]|[\]&~|]", lambda m: named(m) if m[1] else "\\" + m[0], text[start:-1])
        + "]"
    )
