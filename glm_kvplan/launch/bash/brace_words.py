"""Brace expansion: `{a,b}` and `{1..8}` in a word make several words of it."""

import re

from glm_kvplan.launch.bash.syntax import Given, Part, Text
from glm_kvplan.launch.bash.values import missing

_LIST = re.compile(r"\{([^{}\s]*,[^{}\s]*)\}")
_RANGE = re.compile(r"\{(-?[0-9]{1,6})\.\.(-?[0-9]{1,6})(?:\.\.(-?[0-9]{1,6}))?\}")
_MOST = 1024


def with_braces(parts: tuple[Part, ...]) -> list[tuple[Part, ...]]:
    """The words' parts that braces make of one word's. Braces around what is quoted or substituted are not read."""
    if not any(isinstance(part, Text) and not part.quoted and "{" in part.text for part in parts):
        return [parts]
    found: list[tuple[Part, ...]] = [()]
    for part in parts:
        texts: list[Part] = [part]
        if isinstance(part, Text) and not part.quoted:
            texts = [Text(text, False) for text in _expanded(part.text)]
        if len(found) * len(texts) > _MOST:
            return [(Given(missing("{...}")[0], True),)]
        found = [(*before, text) for before in found for text in texts]
    plain = "".join(part.text if isinstance(part, Text) and not part.quoted else " " for part in parts)
    if _spans(plain):
        return [(Given(missing("{...}")[0], True),)]
    return found


def _expanded(text: str) -> list[str]:
    waiting, found = [text], []
    while waiting:
        text = waiting.pop()
        match = _LIST.search(text)
        steps = _RANGE.search(text)
        if match:
            options = match[1].split(",")
        elif steps:
            match, options = steps, _numbers(steps)
        else:
            found.append(text)
            continue
        if len(found) + len(waiting) + len(options) > _MOST:
            return [text] * (_MOST + 1)
        waiting += [text[: match.start()] + option + text[match.end() :] for option in reversed(options)]
    return found


def _numbers(match: re.Match[str]) -> list[str]:
    first, last, step = int(match[1]), int(match[2]), abs(int(match[3] or 1)) or 1
    padded = any(re.match("-?0[0-9]", end) for end in match.group(1, 2))
    width = max(map(len, match.group(1, 2))) if padded else 0
    numbers = range(first, last + 1, step) if first <= last else range(first, last - 1, -step)
    return [str(number).zfill(width) for number in numbers[: _MOST + 1]]


def _spans(plain: str) -> bool:
    """A list in braces goes over quotes or substitutions (blanks here)."""
    opened = plain.find("{")
    closed = plain.find("}", opened)
    return 0 <= opened < closed and "," in plain[opened:closed] and " " in plain[opened:closed]
