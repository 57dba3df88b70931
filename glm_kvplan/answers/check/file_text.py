"""A deployment file's text as plain data and lines: YAML (and so JSON) or TOML."""

import re
from typing import Any

from glm_kvplan.answers.check.positions import PlacedError, line_of, toml_lines
from glm_kvplan.reading.toml_text import read_toml
from glm_kvplan.reading.unreadable import UnreadableError
from glm_kvplan.reading.yaml_text import KeyPath, read_yaml

MOST_KEYS = 10_000
_TOML = re.compile(r"""\s*(\[[^\]]+\]\s*(#.*)?|[\w."'-]+\s*=.*)""")


def looks_like_toml(text: str) -> bool:
    """The first line that says something is a TOML table or `key =`."""
    meaningful = (line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#"))
    return bool(_TOML.fullmatch(next(meaningful, "")))


def parse_yaml(text: str, name: str) -> tuple[dict[str, Any], dict[KeyPath, int]]:
    try:
        documents = read_yaml(text)
    except UnreadableError as error:
        raise PlacedError(name, error.line or 1, f"not YAML: {error.problem}") from None
    if not documents:
        return {}, {}
    data, lines, repeated, _ = documents[0]
    if len(documents) > 1:
        raise PlacedError(name, documents[1].line, "not YAML: several documents; keep one deployment a file")
    if data is not None and not isinstance(data, dict):
        raise PlacedError(name, 1, f"must be a mapping of keys to values, not a {type(data).__name__}")
    for key in data or {}:
        if not isinstance(key, str):
            raise PlacedError(name, line_of(lines, str(key)), f"the key {str(key)[:60]!r} is not text")
    if repeated:
        path, line = repeated[0]
        raise PlacedError(name, line, f"{'.'.join(path)} is given twice (first in line {lines[path]})")
    if len(lines) > MOST_KEYS:
        raise PlacedError(name, max(lines.values()), f"more than {MOST_KEYS:,} keys; a deployment file has a few dozen")
    return data or {}, lines


def parse_toml(text: str, name: str) -> tuple[dict[str, Any], dict[KeyPath, int]]:
    try:
        return read_toml(text), toml_lines(text)
    except UnreadableError as error:
        raise PlacedError(name, error.line or 1, f"not TOML: {error.problem}") from None
