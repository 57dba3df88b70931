"""TOML as plain data, bounded in depth and digits."""

import re
import tomllib
from typing import Any

from glm_kvplan.reading.unreadable import LARGEST_NUMBER, UnreadableError

_PART = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
# tomllib's time grows with the square of a key's parts, and with the depth of each table.
_LONG_KEY = re.compile(rf"(?<![\w-]){_PART}(?:[ \t]*+\.[ \t]*+{_PART}){{32}}")
_MOST_TABLES = 10_000
_LINE = re.compile(r" \(at line (\d+), column \d+\)")


def read_toml(text: str) -> dict[str, Any]:
    """Raises UnreadableError for what is no TOML, keys of over 32 dotted parts, and numbers beyond 2**256."""
    if _LONG_KEY.search(text):
        raise UnreadableError("a key of more than 32 parts")
    if text.count("\n[") > _MOST_TABLES:
        raise UnreadableError(f"more than {_MOST_TABLES:,} tables")
    try:
        data = tomllib.loads(text)
    except RecursionError:
        raise UnreadableError("nested too deeply") from None
    except ValueError as error:  # TOMLDecodeError, and Python's own limit of digits
        found = _LINE.search(str(error))
        reason = str(error).replace(found[0], "") if found else str(error)
        raise UnreadableError(reason.splitlines()[0], int(found[1]) if found else None) from None
    _check_numbers(data)
    return data


def _check_numbers(data: dict[str, Any]) -> None:
    waiting: list[Any] = [data]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            waiting += value.values()
        elif isinstance(value, list):
            waiting += value
        elif isinstance(value, int) and abs(value) > LARGEST_NUMBER:
            raise UnreadableError("a number beyond 2**256")
