"""The options of vLLM's server command, release by release."""

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from glm_kvplan.engines.flag import Flag
from glm_kvplan.engines.option_words import OptionTable
from glm_kvplan.engines.twins import twin_in_vllm
from glm_kvplan.engines.vllm.flag_values import read_flag
from glm_kvplan.engines.vllm.flags import TABLE

ENGINE_FLAGS = Path(__file__).parent / "data" / "engine_flags.json"
_FLAGS: Mapping[str, Flag] = {
    option: row for row in TABLE if row.role in ("flag", "beside") for option in (*row.options, *row.negative)
}
# Read, though they are no memory flags: every spelling, and the one they are kept by.
_NAMED = {option: row.option for row in TABLE if row.role == "named" for option in row.options}


@lru_cache
def _engine_flags() -> dict[str, Any]:
    data: dict[str, Any] = json.loads(ENGINE_FLAGS.read_text(encoding="utf-8"))
    return data


@lru_cache
def option_table(release: str) -> OptionTable:
    """Every option of `release`."""
    takes = {
        option: entry[0] if isinstance(entry, list) else entry
        for option, entry in _engine_flags()["options"].items()
        if not isinstance(entry, list) or release in entry[1]
    }
    return OptionTable(
        release,
        takes,
        flags=_FLAGS,
        named=_NAMED,
        beside={},
        not_in_yaml=frozenset(),
        checked={},
        outside=_outside,
        releases_with=releases_with,
        value=read_flag,
        twin=twin_in_vllm,
    )


def _outside(option: str) -> Flag:
    """An option outside the table: any word, since no byte follows from it."""
    return Flag(option.lstrip("-").replace("-", "_"), "str", None, "", (option,))


def releases_with(option: str) -> tuple[str, ...]:
    """The releases that have `option` (a full spelling), oldest first; empty for one no release has."""
    data = _engine_flags()
    entry = data["options"].get(option)
    if entry is None:
        return ()
    return tuple(entry[1] if isinstance(entry, list) else data["releases"])
