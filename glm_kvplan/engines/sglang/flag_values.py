"""The value a launch flag's text spells, read as the engine's own parser reads it."""

import json
import math
import re

from glm_kvplan.engines.sglang.flags import Flag
from glm_kvplan.errors import InputError

_COUNT = re.compile(r"(\d+)(?:\.(\d+))?(Ki|Mi|Gi|Ti|k|M|G|T)")
_COUNT_FACTOR = {
    **{"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12},
    **{"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40},
}
_ACCEPTED = {
    "int": "a whole number",
    "count": "a whole number, or one with k, M, G (times 1000) or Ki, Mi, Gi (times 1024) such as 128Ki",
    "float": "a number",
    "json": "a JSON object",
    "ints": "whole numbers",
}


def _count(text: str) -> int:
    """A token count with the engine's suffixes (utils/common.py:3329-3364 at 0.5.21): 1k is 1000, 1Ki is 1024."""
    match = _COUNT.fullmatch(text.strip())
    if match is None:
        return int(text)
    whole, decimals, suffix = match.groups()
    if decimals is None:
        return int(whole) * _COUNT_FACTOR[suffix]
    if len(suffix) == 2:
        raise ValueError("the engine takes no decimals with Ki, Mi or Gi")
    scale: int = 10 ** len(decimals)
    return int(whole + decimals) * _COUNT_FACTOR[suffix] // scale


def read_value(flag: Flag, text: str, choices: tuple[str, ...] | None = None, where: str = "") -> object:
    """The value of `flag` that `text` spells, as the engine reads it; for `ints` one element.

    `choices` narrows the flag's own (a release that has fewer). `where` ("word 5", "line 3") stands in the
    message. Raises InputError that quotes the flag and the text and says what is accepted.
    """
    accepted = choices or flag.choices
    try:
        if flag.kind in ("int", "ints"):
            return int(text)
        if flag.kind == "count":
            return _count(text)
        if flag.kind == "float":
            number = float(text)
            if not math.isfinite(number):
                raise ValueError
            return number
        if flag.kind == "json":
            value = json.loads(text)
            if not isinstance(value, dict):
                raise ValueError
            return value
        if accepted is not None and text not in accepted:
            raise ValueError
        return text
    except (ValueError, RecursionError):
        expected = f"one of {', '.join(accepted)}" if accepted else _ACCEPTED[flag.kind]
        place = f"{where}: " if where else ""
        shown = text if len(text) <= 60 else text[:57] + "..."
        raise InputError(f"{place}{flag.options[0]} {shown!r} is not accepted; it takes {expected}") from None
