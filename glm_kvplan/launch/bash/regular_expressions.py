"""`[[ text =~ expression ]]`: expressions that Python's answers as bash's do, in bounded time."""

import re
from collections.abc import Iterable

from glm_kvplan.launch.bash.glob_patterns import set_in

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
    plain = "".join("\0" if quoted else char for char, quoted in chars)
    while at < len(chars):
        char, quoted = chars[at]
        if match := _REPEAT.match(plain, at):
            if not found or found[-1] in "^|($*" or (found[-1] == ")" and repeats) or _REPEAT.match(plain, match.end()):
                raise NotRead  # of nothing, or of what repeats itself
            found.append(match[0])
            repeats += 1
            at = match.end()
            continue
        at += 1
        if quoted or char not in "[]{}\\$^.|()":
            found.append(re.escape(char))
        elif char == "[":
            one = set_in(chars, at, "^")
            if one is None or "\\" in plain[at : one[0]]:
                raise NotRead
            at, expression = one
            found.append(expression)
        elif char == "\\" and at < len(chars) and not chars[at][0].isalnum():
            found.append(re.escape(chars[at][0]))
            at += 1
        elif char in "$^.|()":
            found.append(r"\Z" if char == "$" else char)
        else:
            raise NotRead
    expression = "".join(found)
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
