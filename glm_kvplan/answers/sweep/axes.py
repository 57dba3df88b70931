"""The axes of a sweep: which names can vary, over which values, and the points of their product."""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from math import prod
from typing import Literal

from glm_kvplan.answers.sweep.spans import Span, read_list, read_numbers
from glm_kvplan.engines.by_name import NAMES, assumed_engine, engine_named, find_release, told_engine
from glm_kvplan.engines.flag import Flag, option_of, read_value
from glm_kvplan.engines.protocol import Engine, Release
from glm_kvplan.engines.sweep_columns import REASON, STATUS, Column, ResultKind, sweeping
from glm_kvplan.engines.twins import twin_in
from glm_kvplan.errors import InputError
from glm_kvplan.memory.gpu import find_gpu
from glm_kvplan.model.checkpoints import find_checkpoint

ENGINE = "engine"
Role = Literal["flag", "site", "memory", "workload"]
_OWN: dict[str, tuple[Role, ResultKind]] = {
    ENGINE: ("site", "text"),
    "gpu": ("site", "text"),
    "pre_gib": ("memory", "float"),
    "available_gib": ("memory", "float"),
    "weights_gib": ("memory", "float"),
    "draft_weights_gib": ("memory", "float"),
    "checkpoint": ("memory", "text"),
    "context": ("workload", "int"),
    "concurrency": ("workload", "int"),
    "prefix_states": ("workload", "int"),
    "prompt": ("workload", "int"),
}
_KINDS: dict[str, ResultKind] = {"int": "int", "count": "int", "float": "float", "flag": "flag", "switch": "flag"}
_SWITCH = {"on": True, "true": True, "off": False, "false": False}


@dataclass(frozen=True, slots=True)
class Axis:
    """One name and the values it takes in turn. `role`: flag, site (engine, gpu), memory or workload."""

    name: str
    role: Role
    column: Column
    spans: tuple[Span, ...]
    flag: Flag | None = None

    def __len__(self) -> int:
        return sum(map(len, self.spans))

    def __iter__(self) -> Iterator[object]:
        return chain.from_iterable(self.spans)


def read_axis(text: str, engine: Engine | None = None) -> Axis:
    """The axis that `NAME=VALUES` says, in the words of `engine` (None: the assumed one).

    NAME is a memory flag (any spelling of it), engine, gpu, a reading of memory (pre_gib, available_gib, weights_gib,
    draft_weights_gib), checkpoint, or the workload's context, concurrency, prefix_states or prompt. VALUES are
    a list `1,2,4`, ranges `8k..1m:x2` and `0.70..0.90:0.02` (ends included), `on,off`, and `none` to take a flag back.
    Raises InputError for a name or value that cannot be.
    """
    typed, equals, values = text.partition("=")
    name = typed.strip().lstrip("-").replace("-", "_")
    place = f"--over {typed.strip()[:40]}"
    if not equals or not name:
        raise InputError(f"--over {text[:60]!r}: write NAME=VALUES, such as mem_fraction_static=0.70..0.90:0.02")
    engine = engine or assumed_engine()
    flags = _by_spelling(engine.name)
    role: Role
    kind: ResultKind
    flag = None if name in _OWN else flags.get(name)
    if name in _OWN:
        role, kind = _OWN[name]
    elif flag is not None and flag.kind != "json":
        name, role, kind = flag.name, "flag", _KINDS.get(flag.kind, "text")
    elif flag is not None:
        raise InputError(f"{place}: a JSON value cannot be an axis; sweep the single flags")
    elif name == "checkpoints":
        raise InputError("--over checkpoints is now --over prefix_states")
    else:
        near = difflib.get_close_matches(name[:60], [*_OWN, *flags])
        twin = twin_in(engine.name, option_of(name))
        hint = f"; {engine.title} has {twin}" if twin else f"; nearest: {', '.join(near)}" if near else ""
        raise InputError(
            f"{place}: no such axis{hint} (any flag of {engine.title} that kvplan takes, or {', '.join(_OWN)})"
        )

    def read(word: str) -> Span:
        return _read(word, place, name, kind, flag, engine)

    results = {column.name for column in (STATUS, *sweeping(engine).COLUMNS, REASON)}
    column = Column(f"given_{name}" if name in results else name, kind, "axis")
    return Axis(name, role, column, read_list(values, place, read), flag)


def axis_names(engine: Engine) -> list[str]:
    """Every name that an axis may have, in one spelling."""
    return [*_OWN, *(flag.name for flag in engine.flags if flag.kind != "json")]


@cache
def _by_spelling(engine_name: str) -> Mapping[str, Flag]:
    return {
        spelling.lstrip("-").replace("-", "_"): flag
        for flag in engine_named(engine_name).flags
        for spelling in (flag.name, *flag.options)
    }


def _read(word: str, place: str, name: str, kind: ResultKind, flag: Flag | None, engine: Engine) -> Span:
    takes_none = flag is None or "none" not in (flag.choices or ())
    if word == "none" and takes_none and name not in (ENGINE, "gpu"):
        return (None,)
    if kind == "flag":
        if word not in _SWITCH:
            raise InputError(f"{place}: {word[:40]!r} is not on, off or none")
        return (_SWITCH[word],)
    if kind in ("int", "float"):
        return read_numbers(word, place, whole=kind == "int")
    if flag is not None and flag.kind == "ints":
        for number in word.split("+"):
            read_value(flag, number, None, place)
    elif flag is not None:
        read_value(flag, word, None, place)
    elif name == ENGINE:
        release = release_named(word, engine)
        if word == release.engine.name:  # the one that is assumed is said
            return (f"{word}-{release.base_release}",)
    elif name == "gpu":
        find_gpu(word)
    else:
        find_checkpoint(word)
    return (word,)


def release_named(word: str, engine: Engine) -> Release:
    """The release that a value of the engine axis means; what names no engine's release is `engine`'s to read.

    Raises InputError.
    """
    if told_engine(word) is not None:
        return find_release(word)
    owner = next((each for each in map(engine_named, NAMES) if word in each.releases()), engine)
    return find_release(word, owner)


def flag_value(flag: Flag | None, value: object) -> object:
    """What an axis value is as a flag: `off` leaves out a flag that takes nothing, `1+2+4` are several numbers."""
    if flag is None:
        return value
    if flag.kind == "flag" and value is False:
        return None
    if flag.kind == "ints" and isinstance(value, str):
        return [int(number) for number in value.split("+")]
    return value


def check_axes(axes: Sequence[Axis]) -> None:
    """Raise InputError where a name stands twice."""
    names = [axis.name for axis in axes]
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"--over {name} is given twice; write its values in one list")


def count_points(axes: Sequence[Axis]) -> int:
    """How many points the product of the axes has."""
    return prod(len(axis) for axis in axes)


def points(axes: Sequence[Axis]) -> Iterator[tuple[object, ...]]:
    """The points of the product, one at a time, the last axis fastest. Nothing is written out beforehand."""
    if not axes:
        yield ()
        return
    last = axes[-1]
    for head in points(axes[:-1]):
        for value in last:
            yield (*head, value)
