"""The options of SGLang's server command, release by release."""

import json
from collections.abc import Mapping
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from glm_kvplan.engines.flag import Flag, flag
from glm_kvplan.engines.option_words import OptionTable
from glm_kvplan.engines.sglang.flags import FLAGS, TABLE
from glm_kvplan.engines.sglang.profile import BASELINE
from glm_kvplan.engines.sglang.start_flags import START_FLAGS
from glm_kvplan.engines.twins import twin_in_sglang
from glm_kvplan.errors import InputError

ENGINE_FLAGS = Path(__file__).parent / "data" / "engine_flags.json"
_FLAGS: Mapping[str, Flag] = {option: row for row in FLAGS for option in (*row.options, *row.negative)}
_CHECKED: Mapping[str, Flag] = {option: row for row in START_FLAGS for option in (*row.options, *row.negative)}
# Read, though they are no memory flags: every spelling, and the one they are kept by.
_NAMED = {option: row.option for row in TABLE if row.role == "named" for option in row.options}
_BESIDE = {row.option: row.unplanned for row in TABLE if row.role == "beside"}


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
    return OptionTable(
        release,
        takes,
        flags=_FLAGS,
        named=_NAMED,
        beside=_BESIDE,
        not_in_yaml=frozenset(data["not_in_yaml"][release]),
        checked=_CHECKED,
        outside=partial(_outside, release=release),
        releases_with=releases_with,
        twin=twin_in_sglang,
    )


@lru_cache
def _outside(option: str, release: str) -> Flag:
    """An option outside the table of memory flags: what `release` takes for it."""
    data = _engine_flags()
    words = data["choices"].get(option, ())
    if isinstance(words, dict):
        words = words.get(release, ())
    row = flag(option[2:], data["kinds"].get(option, "str"), None, "")
    return row._replace(options=(option,), choices=tuple(words) or None)


def releases_with(option: str) -> tuple[str, ...]:
    """The releases that have `option` (a full spelling), oldest first; empty for one no release has."""
    data = _engine_flags()
    entry = data["options"].get(option)
    if entry is None:
        return ()
    return tuple(entry[1] if isinstance(entry, list) else data["releases"])
