"""A flag's text as vLLM's own parser reads it: counts with suffixes, JSON, words that stand for nothing."""

import json
import math
import re
from collections.abc import Mapping

from glm_kvplan.engines.flag import Flag, read_value
from glm_kvplan.errors import InputError
from glm_kvplan.reading.secret_words import quoted
from glm_kvplan.reading.unreadable import deep

_COUNT = re.compile(r"(\d+(?:\.\d+)?)([kKmMgGtT])")
_POWER = {"k": 1, "m": 2, "g": 3, "t": 4}
_NUMBER_IN_JSON = re.compile(r"\b\d+(?:\.\d+)?[kKmMgGtT]\b")
_QUOTED = re.compile(r'("(?:[^"\\]|\\.)*")')
# Flags whose JSON may hold bare numbers with a suffix: those that become a configuration object at once.
_SUFFIXES_IN_JSON = ("compilation_config", "attention_config", "kv_transfer_config")


def read_count(text: str) -> int:
    """1k is 1000 and 1K 1024, 25.6k is 25600; a decimal with a capital is an error (human_readable_int).

    Raises ValueError.
    """
    match = _COUNT.fullmatch(text.strip())
    if match is None:
        return int(text)
    number, suffix = match.groups()
    if suffix.islower():
        return int(float(number) * 1000 ** _POWER[suffix])
    whole: int = int(number) * 1024 ** _POWER[suffix.lower()]
    return whole


def read_flag(flag: Flag, text: str, choices: tuple[str, ...] | None = None, place: str = "") -> object:
    """The value that `text` spells; None where it spells nothing. Raises InputError."""
    if text in ("", "None") and flag.default is None:
        return None
    if flag.kind == "count":
        if flag.name == "max_model_len" and text.strip().lower() in ("-1", "auto"):
            return -1
        try:
            return read_count(text)
        except (ValueError, OverflowError):
            raise InputError(
                f"{place + ': ' if place else ''}{flag.option} {quoted(text, flag.option)} is not accepted; it takes a "
                "whole number, or one with k, m, g (times 1000, decimals allowed) or K, M, G (times 1024) such as "
                "25.6k or 128K"
            ) from None
    if flag.kind == "json":
        return _object(flag, text, place)
    return read_value(flag, text, choices, place)


def _object(flag: Flag, text: str, place: str) -> Mapping[str, object]:
    try:
        whole = text
        if flag.name in _SUFFIXES_IN_JSON:
            parts = _QUOTED.split(text)
            parts[::2] = [_NUMBER_IN_JSON.sub(lambda found: str(read_count(found[0])), part) for part in parts[::2]]
            whole = "".join(parts)
        value = json.loads(whole)
        if not isinstance(value, dict) or deep(value):
            raise ValueError
    except (ValueError, OverflowError, RecursionError):
        hint = "; in a shell it stands in single quotes" if "'" in text or '"' not in text else ""
        raise InputError(
            f"{place + ': ' if place else ''}{flag.option} {quoted(text, flag.option)} is not accepted; it takes a "
            f"JSON object{hint}, or its keys one by one: {flag.option}.key value"
        ) from None
    return value


def read_nested(text: str) -> object:
    """A value of --flag.key: JSON, else a number with a suffix, else the text itself."""
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        try:
            return read_count(text)
        except ValueError:
            return text
    return None if isinstance(value, float) and not math.isfinite(value) else value
