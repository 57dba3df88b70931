"""Blocks of code in a Markdown document, each on its own lines."""

import re

_FENCE = re.compile(r"^ {0,3}(```+|~~~+)[ \t]*([\w+.-]*)[^`\n]*$")


def is_document(text: str) -> bool:
    """The text has a fenced block that opens and closes, and more around it than comments of a script."""
    return sum(_FENCE.match(line) is not None for line in text.splitlines()) >= 2


def blocks(text: str) -> list[str]:
    """The text of each block, with empty lines in front so that lines keep their numbers; prompts are taken off."""
    found: list[str] = []
    inside: list[str] | None = None
    fence = ""
    for at, line in enumerate(text.splitlines()):
        match = _FENCE.match(line)
        if inside is None:
            if match is not None:
                inside, fence = [""] * (at + 1), match[1]
        elif match is not None and match[1].startswith(fence) and not match[2]:
            found.append("\n".join(inside))
            inside = None
        else:
            inside.append(re.sub(r"^\s*[$>] ", "", line))
    return found
