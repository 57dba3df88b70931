"""Text broken into lines by the cells it takes: Chinese characters take two."""

import re
import unicodedata

# A word with the white space before it; a wide character may be parted from the next, no word from its punctuation.
_WIDE = "\u1100-\u115f\u2e80-\u303e\u3041-\u33ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7a3\uf900-\ufaff\uff00-\uff60"
_TOKEN = f"[ ]*[（「『《]*(?:[{_WIDE}]|[^ {_WIDE}]+)[、。，．：；！？）」』》]*"


def width_of(text: str) -> int:
    """Cells that printable text takes."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(mark) else 1 + (unicodedata.east_asian_width(mark) in "WF") for mark in text)


def pad(text: str, width: int, *, right: bool = False) -> str:
    """The text and what is missing to `width`; `right` sets it flush right."""
    space = " " * (width - width_of(text))
    return space + text if right else text + space


def wrap(text: str, width: int, indent: int | None = None) -> list[str]:
    """Lines of at most `width` cells; words too long for one are cut.

    The lines after the first are indented by `indent`, or as the first is.
    """
    if width_of(text) <= width:
        return [text]
    if indent is None:
        indent = len(text) - len(text.lstrip())
    indent = min(indent, width // 2)
    lines, line = [], ""
    for token in re.findall(_TOKEN, text):
        if line.strip() and width_of(line + token) > width:
            lines.append(line.rstrip())
            token = token.lstrip()
            line = " " * min(indent, max(0, width - width_of(token)))  # rather no indent than a word in two
        line += token
        while width_of(line) > width:
            head = _cut(line, width)
            lines.append(head)
            line = " " * indent + line[len(head) :]
    return [*lines, line] if line.strip() else lines


def longest_word(text: str) -> int:
    """Cells of the widest word."""
    return max((width_of(token.strip()) for token in re.findall(_TOKEN, text)), default=0)


def _cut(text: str, width: int) -> str:
    """As much of the text as `width` cells hold."""
    end = min(len(text), width)
    while width_of(text[:end]) > width:
        end -= 1
    return text[: max(end, 1)]
