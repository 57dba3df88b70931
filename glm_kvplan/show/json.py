"""One encoder for every answer: what JSON says of it follows from its types.

A named tuple or a dataclass is an object of its fields, in their order. `nbytes` is called `bytes`, and the fields of
a `head` stand beside their neighbours. A sentence is its English, a range its two ends; infinity is null.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from math import isfinite
from typing import Any, TextIO

from glm_kvplan.show.printable import json_text
from glm_kvplan.show.said import Said

SCHEMA_VERSION = 2
_SPELLED = {"nbytes": "bytes"}


def document(command: str, answer: Any) -> dict[str, Any]:
    """An answer as the object a command prints."""
    return {"schema": f"glm-kvplan/{command}", "schema_version": SCHEMA_VERSION, **plain(answer)}


def print_json(value: Any, stream: TextIO | None = None) -> None:
    """Print JSON, to standard output or a stream; bytes are whole numbers, NaN and infinity never appear."""
    print(json_text(json.dumps(value, indent=2, allow_nan=False)), file=stream)


def plain(value: Any) -> Any:
    """A value of an answer in JSON's own types. Raises TypeError for a kind that no answer has."""
    if value is None or isinstance(value, str | int):
        return value.value if isinstance(value, Enum) else value
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, Said):
        return str(value)
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return _object(value._fields, value)
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    if isinstance(value, Mapping):
        return {str(name): plain(each) for name, each in value.items()}
    if isinstance(value, range):
        return [value.start, value.stop]
    if is_dataclass(value):
        return _object([each.name for each in fields(value)], value)
    raise TypeError(f"{type(value).__name__} is no value of an answer")


def _object(names: Iterable[str], value: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name in names:
        each = plain(getattr(value, name))
        if name == "head":
            found.update(each)
        else:
            found[_SPELLED.get(name, name)] = each
    return found
