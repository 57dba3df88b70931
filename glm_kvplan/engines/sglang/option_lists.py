"""The options of SGLang's server command, release by release."""

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from glm_kvplan.engines.flag import Flag
from glm_kvplan.engines.option_words import OptionTable
from glm_kvplan.engines.sglang.flags import FLAGS, TABLE
from glm_kvplan.engines.sglang.profile import BASELINE
from glm_kvplan.errors import InputError

ENGINE_FLAGS = Path(__file__).parent / "data" / "engine_flags.json"
_FLAGS: Mapping[str, Flag] = {option: flag for flag in FLAGS for option in (*flag.options, *flag.negative)}
# Read, though they are no memory flags: every spelling, and the one they are kept by.
_NAMED = {option: row.option for row in TABLE if row.role == "named" for option in row.options}
_BESIDE = frozenset(row.option for row in TABLE if row.role == "beside")


@lru_cache
def _engine_flags() -> dict[str, Any]:
    data: dict[str, Any] = json.loads(ENGINE_FLAGS.read_text(encoding="utf-8"))
    return data


@lru_cache
def option_table(release: str = BASELINE) -> OptionTable:
    """Every option of `release`. Raises InputError for a release whose options are not listed."""
    data = _engine_flags()
    if release not in data["releases"]:
        known = ", ".join(data["releases"])
        raise InputError(f"engine {release!r}: its launch flags are not listed; known releases: {known}")
    takes = {
        option: entry[0] if isinstance(entry, list) else entry
        for option, entry in data["options"].items()
        if not isinstance(entry, list) or release in entry[1]
    }
    no_yaml = frozenset(data["not_in_yaml"][release])
    return OptionTable(release, takes, _FLAGS, _NAMED, _BESIDE, no_yaml, releases_with)


@lru_cache
def memory_table() -> OptionTable:
    """The memory flags alone, of every release."""
    arity: dict[str, int | str] = {"flag": 0, "switch": 0, "ints": "+"}
    takes = {option: arity.get(flag.kind, 1) for option, flag in _FLAGS.items()}
    return OptionTable("", takes, _FLAGS, _NAMED, _BESIDE, frozenset(), releases_with)


def releases_with(option: str) -> tuple[str, ...]:
    """The releases that have `option` (a full spelling), oldest first; empty for one no release has."""
    data = _engine_flags()
    entry = data["options"].get(option)
    if entry is None:
        return ()
    return tuple(entry[1] if isinstance(entry, list) else data["releases"])
