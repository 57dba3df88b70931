"""`[[ text =~ expression ]]`: expressions that Python's answers as bash's do, in bounded time."""

import re
from collections.abc import Iterable

from glm_kvplan.launch.bash.glob_patterns import set_in

_ESCAPED = re.compile(r"[^\w<>`']")  # what a backslash before it makes plain; `\<` and `\s` mean something else
_REPEAT = re.compile(r"[*+?]|\{[0-9]{1,2}(?:,[0-9]{0,2})?\}")
_LONGEST, _MOST_REPEATS = 200, 3  # tried in turn they take time with the text's length to the power of the repeats
_LONGEST_WITH_ONE = 1000


class NotRead(Exception):
    """An expression that is not worked out here."""


def groups_of(parts: Iterable[tuple[str, bool]], text: str) -> tuple[str, ...] | None:
    """What the whole expression and its groups match; None where it does not match. Raises NotRead.

    `parts` are (text, quoted); what is quoted stands for itself.
    """
    found: list[str] = []
    repeats, at = 0, 0
    chars = [(char, quoted) for part, quoted in parts for char in part]
    whole = "".join(char for char, _ in chars)
    plain = "".join("\0" if quoted else char for char, quoted in chars)
    while at < len(whole):
        if match := _REPEAT.match(plain, at):
            at = match.end()
            if (found[-1:] == [")"] and (repeats or "|" in found)) or _REPEAT.match(plain, at):
                raise NotRead  # of what repeats itself, or may match in several ways
            found.append(match[0])
            repeats += 1
            continue
        char = plain[at]
        at += 1
        if char == "[" and (one := set_in(whole, plain, at, ("^",))):
            at, expression = one
            found.append(expression)
        elif char in "$^.|()":
            found.append(r"\Z" if char == "$" else char)
        elif char == "\\" and _ESCAPED.match(plain, at):
            found.append(re.escape(whole[at]))
            at += 1
        elif char in "[]{}\\":
            raise NotRead
        else:
            found.append(re.escape(whole[at - 1]))
    expression = "".join(found)
    if len(text) > (_LONGEST if repeats > 1 else _LONGEST_WITH_ONE) or repeats > _MOST_REPEATS:
        raise NotRead
    try:
        match = re.search(expression, text, re.DOTALL)
    except re.error:
        raise NotRead from None
    if match is None:
        return None
    if "|" in expression and match.re.groups:
        return ()  # bash takes the longest alternative, Python the first: what the groups hold may differ
    return (match[0], *(group or "" for group in match.groups()))
