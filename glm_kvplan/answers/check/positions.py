"""At which line of a TOML file each key stands, so that a complaint can point at it."""

import re
from collections.abc import Mapping

from glm_kvplan.errors import InputError, one_line
from glm_kvplan.reading.yaml_text import KeyPath

_HEADER = re.compile(r"\s*\[\[?([^\[\]]+)\]\]?\s*(#.*)?")
_KEY = re.compile(r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=(.*)""")
_PART = re.compile(r"""[\w-]+|"[^"]*"|'[^']*'""")
_OPENING = ('"""', "'''")
_TOKEN = re.compile(r"""\"{3}|'{3}|"(?:[^"\\]|\\.)*+"|'[^']*+'|[\[\]{}#]""")


class PlacedError(InputError):
    """An InputError of a file: `path` and `line` (1 where no line can be named) for whoever annotates the file."""

    def __init__(self, path: str, line: int | None, message: str) -> None:
        super().__init__(f"{path}:{line}: {message}" if line else f"{path}: {message}")
        self.path = path
        self.line = line or 1
        self.message = one_line(message)


def line_of(lines: Mapping[KeyPath, int], *path: str) -> int:
    """The line of a key, else of the nearest key around it, else 1."""
    for length in range(len(path), 0, -1):
        if path[:length] in lines:
            return lines[path[:length]]
    return 1


def toml_lines(text: str) -> dict[KeyPath, int]:
    """Lines (from 1) of the tables and keys of a TOML text that parses; keys of inline tables have their table's."""
    lines: dict[KeyPath, int] = {}
    table: KeyPath = ()
    open_string, depth = "", 0
    for number, line in enumerate(text.splitlines(), 1):
        if open_string or depth:
            open_string, depth = _still_open(line, open_string, depth)
            continue
        header = _HEADER.fullmatch(line)
        if header:
            table = _parts(header[1])
            lines.setdefault(table, number)
            continue
        key = _KEY.match(line)
        if key:
            path = (*table, *_parts(key[1]))
            for length in range(len(table) + 1, len(path) + 1):
                lines.setdefault(path[:length], number)
            open_string, depth = _still_open(key[2], "", 0)
    return lines


def _parts(dotted: str) -> KeyPath:
    return tuple(part.strip("\"'") for part in _PART.findall(dotted))


def _still_open(line: str, quote: str, depth: int) -> tuple[str, int]:
    """Whether a multi-line string or a bracket stays open at the end of the line."""
    at = 0
    while at < len(line):
        if quote:
            end = line.find(quote, at)
            if end < 0:
                return quote, depth
            at, quote = end + 3, ""
            continue
        found = _TOKEN.match(line, at)
        if found is None:
            at += 1
            continue
        token, at = found[0], found.end()
        if token == "#":
            break
        if token in _OPENING:
            quote = token
        elif token in "[{":
            depth += 1
        elif token in "]}":
            depth -= 1
    return quote, depth
