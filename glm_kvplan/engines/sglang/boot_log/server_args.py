"""The engine's `server_args=...` line: a mapping of some 500 fields, of which those of the table of flags are kept.

Nothing is evaluated but plain literals, and a field that is not in the table is dropped where it is read:
keys, passwords and tokens never reach a variable that outlives the scan.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from glm_kvplan.engines.flag import Flag
from glm_kvplan.engines.printed_fields import fields_of, literal
from glm_kvplan.engines.sglang.flags import TABLE
from glm_kvplan.errors import InputError
from glm_kvplan.reading.secret_words import public

# The fields that are kept: the table of flags says which of them bear on memory.
_ROWS = {row.name: row for row in TABLE if row.printed and row.role in ("flag", "named")}
KEPT = frozenset(_ROWS)
_SCALAR = (str, int, float)
_PLAIN = {"ints": (*_SCALAR, list), "json": (*_SCALAR, dict)}


class ServerArguments(NamedTuple):
    """What was kept. `names` holds every field's name, never a value; `complete` says the line was not cut."""

    values: dict[str, object]
    names: frozenset[str]
    complete: bool


def parse(text: str) -> ServerArguments | None:
    """The arguments in `text`, which starts at `{` or `ServerArgs(`; None where it starts with neither.

    Both printed forms are read: `{'tp_size': 4, ...}` of releases 0.5.20 to 0.5.23 and `ServerArgs(tp_size=4, ...)`.
    Values are literals or are dropped. A line that was cut gives what came before the cut.
    """
    opening = re.match(r"\{|ServerArgs\(", text)
    if opening is None:
        return None
    values: dict[str, object] = {}
    fields = fields_of(text, opening.end())
    for field in fields.found:
        if field.name in KEPT:
            _keep(values, field.name, text[field.start : field.end])
    return ServerArguments(values, frozenset(field.name for field in fields.found), fields.complete)


def from_mapping(data: Mapping[str, object]) -> ServerArguments:
    """The same from a JSON object, as /server_info gives it."""
    values: dict[str, object] = {}
    for name, value in data.items():
        if name in KEPT and _plain(_ROWS[name], value):
            values[name] = public(value)
    return ServerArguments(values, frozenset(data), True)


def _keep(values: dict[str, object], name: str, text: str) -> None:
    try:
        value = literal(text)
    except ValueError:
        return
    if _plain(_ROWS[name], value):
        values[name] = public(value)


def _plain(row: Flag, value: object) -> bool:
    """A value that the flag can have: a list or a mapping only where it takes one."""
    return isinstance(value, _PLAIN.get(row.kind, _SCALAR))


def require_model(arguments: Mapping[str, object]) -> None:
    """Raises InputError where the arguments name no tensor-parallel width, which every server has."""
    if "tp_size" not in arguments:
        raise InputError(
            "the server's arguments name no tp_size: where the line is cut, give the launch command after -- or with "
            "--launch FILE; else, is this an SGLang server of release 0.5.20 or later?"
        )
