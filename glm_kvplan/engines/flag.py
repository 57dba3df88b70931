"""One record of a launch flag, whatever the engine: everything true of it, and its value read and checked."""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from glm_kvplan.errors import InputError, RefusedError
from glm_kvplan.reading.secret_words import quoted

Kind = Literal["int", "count", "float", "str", "json", "data", "ints", "words", "flag", "switch", "present"]
Role = Literal["flag", "ours", "named", "checked", "decided", "beside"]
Printed = Literal["flag", "fact", ""]

LARGEST = 1 << 48
RANKS = 1 << 16  # ranks, stages and groups at most
LARGEST_NUMBER = 1e9  # of a flag that takes a fraction or ratio
# What a flag moves.
WEIGHTS: tuple[str, ...] = ("weights",)
POOLS: tuple[str, ...] = ("pools",)
BOTH = WEIGHTS + POOLS
NOTHING: tuple[str, ...] = ()


class Reason(NamedTuple):
    """Why a flag has its value. `text` is a template over `a` (the flags), `gpu` and `profile`, filled when read."""

    text: str
    source: str = ""


class Choice(NamedTuple):
    """One resolved value: `given` says that the user's own value stands; `source` is file:line at a release."""

    flag: str
    value: object
    given: bool
    reason: str
    source: str


class Flag(NamedTuple):
    """One flag of an engine: the only place that says any of this about it."""

    name: str  # the engine's field
    # int, count (an int that may carry 1k = 1000 or 1Ki = 1024), float, str, json (an object), data (any JSON), ints
    # or words (one or more), flag (takes nothing: true), switch (takes nothing; `negative` spells false) or present
    # (takes a secret: kept is that it was given)
    kind: Kind
    default: object  # the engine's own while nothing is resolved
    help: str
    options: tuple[str, ...] = ()  # its spellings (`--tp-size`, `--tp`), the one we print first
    negative: tuple[str, ...] = ()
    choices: tuple[str, ...] | None = None  # of all releases together
    dated: tuple[tuple[str, str, str], ...] = ()  # choices of some releases: word, first release with, first without it
    least: float = 1  # of a number; a float lies above it
    most: float = LARGEST
    group: str = ""  # of the help
    since: str = ""  # first release that has it, "" for all known ones
    gone: str = ""  # first release that has it no more
    # flag: given to the engine; ours: given to kvplan alone; named: read from a launch, no flag of the memory model;
    # checked: read from a launch for what the engine refuses, moves nothing;
    # decided: no flag, a value that rules decide; beside: takes or frees GPU memory that is not planned
    role: Role = "flag"
    moves: tuple[str, ...] = POOLS  # the weights of a rank, its pools, both, nothing
    becomes: str = ""  # the values that rules make of it, where nothing but rules reads the flag itself
    # What a server's printed value (boot log, server info) is here: read back as the flag; a fact that is no flag to
    # give (the engine decides it whatever is given); "" for one that is not read
    printed: Printed = "flag"
    shown: bool = False  # among the resolved choices, in the table's order
    resolved: str = ""  # the field of the deployment with the value that counts, where that is another one
    under: str = ""  # the flag without which it does nothing: not shown, not read back
    reason: Reason | None = None  # of the value that no rule touched
    of_card: bool = False  # the default follows from the GPU
    together: str = ""  # flags of one name here are given all or none
    unplanned: str = ""  # it changes bytes in a way that is not planned: what to know about it
    unread: str = ""  # why no rule, component or estimate reads it
    names_file: bool = False  # its value is a file or folder that is read here, where it exists

    @property
    def option(self) -> str:
        """The spelling to print; a value that no option sets is named like one."""
        return self.options[0] if self.options else option_of(self.name)

    def words(self, value: object) -> str:
        """As one would type it: `--tp-size 8`; "" for a switch that is off and has no spelling for it."""
        if value is True:
            return self.option
        if value is False:
            return self.negative[0] if self.negative else ""
        import shlex  # a third of a millisecond that no answer in JSON needs

        if isinstance(value, list | tuple):
            return " ".join([self.option, *(shlex.quote(str(item)) for item in value)])
        return f"{self.option} {shlex.quote(json.dumps(value) if isinstance(value, dict) else str(value))}"

    def exists_in(self, release: str) -> bool:
        """Whether `release` has the flag."""
        return _within(release, self.since, self.gone)

    def choices_in(self, release: str) -> tuple[str, ...] | None:
        """The values `release` accepts; None where it takes any."""
        if self.choices is None or not self.dated:
            return self.choices
        absent = {word for word, since, gone in self.dated if not _within(release, since, gone)}
        return tuple(word for word in self.choices if word not in absent)


def narrowed(flags: Iterable[Flag], release: str) -> dict[str, tuple[str, ...]]:
    """The flags that `release` does not have (no values), and those of which it takes fewer values than others do."""
    missing: dict[str, tuple[str, ...]] = {flag.name: () for flag in flags if not flag.exists_in(release)}
    return {flag.name: flag.choices_in(release) or () for flag in flags if flag.dated} | missing


def check_release(
    flags: Mapping[str, Flag], given: Mapping[str, object], fewer: Mapping[str, Sequence[str]], release: str
) -> None:
    """Raise RefusedError for what `release` does not know; `fewer` is what is `narrowed` in it."""
    if fewer.keys().isdisjoint(given):
        return
    for name in sorted(fewer.keys() & given.keys()):
        value, option = given[name], flags[name].option
        if not fewer[name]:
            raise RefusedError(f"{option} does not exist in {release}; leave it out")
        if value is not None and value not in fewer[name]:
            raise RefusedError(f"{option} {value} does not exist in {release}; it takes {', '.join(fewer[name])}")


class Variable(NamedTuple):
    """One environment variable of an engine that changes bytes, or what the engine refuses."""

    name: str
    kind: Literal["switch", "mib", "word", "ints"]
    default: object
    help: str
    choices: tuple[str, ...] | None = None
    moves: tuple[str, ...] = POOLS
    unread: str = ""  # why nothing reads it


def option_of(name: str) -> str:
    """`--tp-size` of `tp_size`."""
    return "--" + name.replace("_", "-")


def flag(
    name: str,
    kind: Kind,
    default: object,
    help: str,
    *aliases: str,
    choices: str = "",
    least: float | None = None,
    most: float | None = None,
    **more: Any,
) -> Flag:
    """A row of an engine's table. The first option is the name with dashes; `aliases` are its other spellings.

    `choices` are words; `word>=0.5.22` is one that came with a release, `word<0.5.22` one that left with it.
    A float lies above 0 unless `least` says otherwise.
    """
    words, dated = _words(choices)
    least = (0 if kind == "float" else 1) if least is None else least
    most = (LARGEST_NUMBER if kind == "float" else LARGEST) if most is None else most
    options = () if more.get("role") == "decided" else (option_of(name), *aliases)
    return Flag(name, kind, default, help, options, choices=words, dated=dated, least=least, most=most, **more)


def _words(text: str) -> tuple[tuple[str, ...] | None, tuple[tuple[str, str, str], ...]]:
    if not text:
        return None, ()
    words, dated = [], []
    for entry in text.split():
        word, _, since = entry.partition(">=")
        word, _, gone = word.partition("<")
        words.append(word)
        if since or gone:
            dated.append((word, since, gone))
    return tuple(words), tuple(dated)


@lru_cache(maxsize=256)
def _within(release: str, since: str, gone: str) -> bool:
    number = _number(release)
    return (not since or number >= _number(since)) and (not gone or number < _number(gone))


def _number(release: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", release.partition(" ")[0])[:3])


_COUNT = r"(\d+)(?:\.(\d+))?(Ki|Mi|Gi|Ti|k|M|G|T)"
_COUNT_FACTOR = {
    **{"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12},
    **{"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40},
}
_NUMBER = (int, float)
_ACCEPTED = {
    "int": "a whole number",
    "count": "a whole number, or one with k, M, G (times 1000) or Ki, Mi, Gi (times 1024) such as 128Ki",
    "float": "a number",
    "json": "a JSON object",
    "data": "JSON",
    "ints": "whole numbers",
}


def _count(text: str) -> int:
    """A token count with the engine's suffixes (utils/common.py:3394-3429 at 0.5.23): 1k is 1000, 1Ki is 1024."""
    match = re.fullmatch(_COUNT, text.strip())
    if match is None:
        return int(text)
    whole, decimals, suffix = match.groups()
    if decimals is None:
        return int(whole) * _COUNT_FACTOR[suffix]
    if len(suffix) == 2:
        raise ValueError("the engine takes no decimals with Ki, Mi or Gi")
    scale: int = 10 ** len(decimals)
    return int(whole + decimals) * _COUNT_FACTOR[suffix] // scale


def read_value(flag: Flag, text: str, choices: tuple[str, ...] | None = None, place: str = "") -> object:
    """The value of `flag` that `text` spells, as the engine's own parser reads it; for `ints` one element.

    `choices` narrows the flag's own (a release that has fewer). `place` ("word 5", "line 3") stands in the
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
        if flag.kind in ("json", "data"):
            value = json.loads(text)
            if flag.kind == "json" and not isinstance(value, dict):
                raise ValueError
            return value
        if flag.kind == "present":
            return True
        if accepted is not None and text not in accepted:
            raise ValueError
        return text
    except (ValueError, RecursionError):
        expected = f"one of {', '.join(accepted)}" if accepted else _ACCEPTED[flag.kind]
        before = f"{place}: " if place else ""
        raise InputError(
            f"{before}{flag.option} {quoted(text, flag.option)} is not accepted; it takes {expected}"
        ) from None


def only_try(tries: Mapping[str, Sequence[object]] | None, name: str) -> str | None:
    """The one value, a text, that is to be tried of the flag `name`. Raises InputError for others, and for several."""
    if not tries:
        return None
    other = next((each for each in tries if each != name), None)
    if other is not None or len(tries[name]) > 1:
        said, only = option_of(other or name)[2:], option_of(name)[2:]
        raise InputError(f"--try {said} goes with --gpus; without it one value of {only} is tried")
    return str(tries[name][0])


def check_value(flag: Flag, value: object) -> None:
    """Hold a typed value (of a file, of JSON, of Python) against the record. Raises InputError that says what it takes.

    `True` is no number, a number is no text, and no number leaves its bounds.
    """
    kind = flag.kind
    if kind == "data":
        return
    if kind in ("flag", "switch", "present"):
        if not isinstance(value, bool):
            raise _wrong(flag, value, "true or false")
    elif kind in ("int", "count"):
        if not isinstance(value, int) or isinstance(value, bool):
            raise _wrong(flag, value, "a whole number")
        if not flag.least <= value <= flag.most:
            raise _wrong(flag, value, f"a whole number from {flag.least} to {flag.most}")
    elif kind == "float":
        if isinstance(value, bool) or not isinstance(value, _NUMBER):
            raise _wrong(flag, value, "a number")
        if not flag.least < value <= flag.most:
            raise _wrong(flag, value, f"a number above {flag.least:g} and at most {flag.most:g}")
    elif kind == "ints":
        sizes = value if isinstance(value, list | tuple) else ()
        if not sizes or not all(type(size) is int and 0 < size <= LARGEST for size in sizes):
            raise _wrong(flag, value, "whole numbers above zero")
    elif kind == "words":
        if not isinstance(value, list | tuple) or not all(isinstance(word, str) for word in value):
            raise _wrong(flag, value, "words")
    elif kind == "json":
        if not isinstance(value, Mapping):
            raise _wrong(flag, value, "a JSON object")
    elif not isinstance(value, str) or (flag.choices is not None and value not in flag.choices):
        raise _wrong(flag, value, f"one of {', '.join(flag.choices)}" if flag.choices else "text")


def _wrong(flag: Flag, value: object, expected: str) -> InputError:
    return InputError(f"{flag.option} {quoted(value, flag.option)} is not accepted; it takes {expected}")
