"""At which line of a YAML or TOML file each key stands, so that a complaint can point at it."""

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from glm_kvplan.errors import InputError

if TYPE_CHECKING:
    from yaml.nodes import Node

KeyPath = tuple[str, ...]  # the keys that lead to a place in a file

MOST_KEYS = 10_000
_HEADER = re.compile(r"\s*\[\[?([^\[\]]+)\]\]?\s*(#.*)?")
_KEY = re.compile(r"""\s*((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*(?:[\w-]+|"[^"]*"|'[^']*'))*)\s*=(.*)""")
_PART = re.compile(r"""[\w-]+|"[^"]*"|'[^']*'""")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"' + r"|'[^']*'")


class PlacedError(InputError):
    """An InputError of a file: `path` and `line` (1 where no line can be named) for whoever annotates the file."""

    def __init__(self, path: str, line: int | None, message: str) -> None:
        super().__init__(f"{path}:{line}: {message}" if line else f"{path}: {message}")
        self.path = path
        self.line = line or 1
        self.message = message


def line_of(lines: Mapping[KeyPath, int], *path: str) -> int:
    """The line of a key, else of the nearest key around it, else 1."""
    for length in range(len(path), 0, -1):
        if path[:length] in lines:
            return lines[path[:length]]
    return 1


def yaml_lines(root: "Node | None", name: str) -> dict[KeyPath, int]:
    """Lines (from 1) of every key of a composed YAML document, by the keys that lead to it.

    Raises PlacedError for a key given twice and for more than 10,000 keys.
    """
    lines: dict[KeyPath, int] = {}
    for path, line in _walk(root, (), frozenset()):
        if path in lines:
            raise PlacedError(name, line, f"{'.'.join(path)} is given twice (first in line {lines[path]})")
        if len(lines) >= MOST_KEYS:
            raise PlacedError(name, line, f"more than {MOST_KEYS:,} keys; a deployment file has a few dozen")
        lines[path] = line
    return lines


def _walk(node: "Node | None", path: KeyPath, above: frozenset[int]) -> Iterator[tuple[KeyPath, int]]:
    from yaml.nodes import MappingNode, ScalarNode

    if not isinstance(node, MappingNode) or id(node) in above:
        return
    for key, value in node.value:
        if not isinstance(key, ScalarNode) or key.tag == "tag:yaml.org,2002:merge":
            continue
        here = (*path, key.value)
        yield here, key.start_mark.line + 1
        yield from _walk(value, here, above | {id(node)})


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
    while True:
        if quote:
            _, found, line = line.partition(quote)
            if not found:
                return quote, depth
            quote = ""
        starts = [(line.find(mark), mark) for mark in ('"""', "'''") if mark in line]
        if not starts:
            break
        at, quote = min(starts)
        depth += _brackets(line[:at])
        line = line[at + 3 :]
    return "", depth + _brackets(line)


def _brackets(line: str) -> int:
    bare = _STRING.sub("", line).partition("#")[0]
    return sum(bare.count(mark) for mark in "[{") - sum(bare.count(mark) for mark in "]}")
