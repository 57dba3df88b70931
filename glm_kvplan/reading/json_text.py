"""JSON as plain data, bounded in digits and depth, strict: no NaN, and keys given twice are named."""

import json
from typing import Any, NoReturn

from glm_kvplan.reading.unreadable import LONGEST_NUMBER, UnreadableError


def read_json(text: str) -> tuple[Any, tuple[str, ...]]:
    """The value, and keys that stand more than once in one object (the last one counts).

    Raises UnreadableError for what is no JSON, NaN and infinities, nesting too deep and numbers of over 100 digits.
    """
    repeated: dict[str, None] = {}

    def last_wins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            seen: set[str] = set()
            for name, _ in pairs:
                if name in seen:
                    repeated[name] = None
                seen.add(name)
        return found

    try:
        value = json.loads(text, parse_constant=_no_constant, parse_int=_whole, object_pairs_hook=last_wins)
    except RecursionError:
        raise UnreadableError("is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise UnreadableError(
            f"is not JSON ({error.msg} at line {error.lineno}, column {error.colno})", error.lineno
        ) from None
    return value, tuple(repeated)


def _no_constant(name: str) -> NoReturn:
    raise UnreadableError(f"holds {name}, which is not JSON; write a number")


def _whole(digits: str) -> int:
    if len(digits) > LONGEST_NUMBER:
        raise UnreadableError("holds a number with too many digits")
    return int(digits)
