"""A deployment file's text as plain data and lines: YAML (and so JSON) or TOML."""

import re
import tomllib
from typing import Any

from glm_kvplan.answers.check.positions import KeyPath, PlacedError, line_of, toml_lines, yaml_lines

_TOML = re.compile(r"""\s*(\[[^\]]+\]\s*(#.*)?|[\w."'-]+\s*=.*)""")


def looks_like_toml(text: str) -> bool:
    """The first line that says something is a TOML table or `key =`."""
    meaningful = (line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#"))
    return bool(_TOML.fullmatch(next(meaningful, "")))


def parse_yaml(text: str, name: str) -> tuple[dict[str, Any], dict[KeyPath, int]]:
    import yaml

    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        lines = yaml_lines(root, name)
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        problem = str(getattr(error, "problem", None) or "it does not parse")
        if "single document" in str(error):
            problem = "several documents; keep one deployment a file"
        raise PlacedError(name, mark.line + 1 if mark is not None else 1, f"not YAML: {problem}") from None
    except (ValueError, RecursionError) as error:  # a date that is none, nesting without end
        if isinstance(error, PlacedError):
            raise
        raise PlacedError(name, 1, f"not YAML: {type(error).__name__}") from None
    if data is not None and not isinstance(data, dict):
        raise PlacedError(name, 1, f"must be a mapping of keys to values, not a {type(data).__name__}")
    for key in data or {}:
        if not isinstance(key, str):
            raise PlacedError(name, line_of(lines, str(key)), f"the key {key!r} is not text")
    return data or {}, lines


def parse_toml(text: str, name: str) -> tuple[dict[str, Any], dict[KeyPath, int]]:
    try:
        return tomllib.loads(text), toml_lines(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        found = re.search(r" \(at line (\d+), column \d+\)", str(error))
        reason = str(error).replace(found[0], "") if found else str(error)
        raise PlacedError(name, int(found[1]) if found else 1, f"not TOML: {reason}") from None
