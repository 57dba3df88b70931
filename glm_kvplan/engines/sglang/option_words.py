"""Option words matched to the engine's flags, the way its own argument parser matches them."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from glm_kvplan.engines.flag import Flag, read_value
from glm_kvplan.engines.sglang.flags import FLAGS, TABLE
from glm_kvplan.engines.sglang.profile import BASELINE
from glm_kvplan.errors import InputError
from glm_kvplan.launch.shell import Word, printable

ENGINE_FLAGS = Path(__file__).parent / "data" / "engine_flags.json"
FLAG_OF_OPTION: Mapping[str, Flag] = {option: flag for flag in FLAGS for option in (*flag.options, *flag.negative)}
_NEGATIVE_NUMBER = re.compile(r"-\d+|-\d*\.\d+")
# Read, though they are no memory flags: every spelling, and the one they are kept under.
_NAMED = {option: row.option for row in TABLE if row.role == "named" for option in row.options}
_MOST_WORDS = 5000  # of one command; a real one has a fiftieth of it


class OptionTable(NamedTuple):
    """The options of one release: what each takes (0, 1, "?", "*" or "+"), and choices narrower than the flag's."""

    release: str
    takes: Mapping[str, int | str]
    choices: Mapping[str, tuple[str, ...]]
    not_in_yaml: frozenset[str]


@dataclass(slots=True)
class Options:
    """What option words say: memory flags by name, the engine's other options counted, the rest named."""

    flags: dict[str, object] = field(default_factory=dict)
    other: dict[str, Word] = field(default_factory=dict)  # options that touch no memory, with their last value
    ignored: int = 0  # how many of those stood there
    unknown: list[str] = field(default_factory=list)
    positions: dict[str, str] = field(default_factory=dict)  # flag name: where its value stood
    repeated: list[str] = field(default_factory=list)  # a line for each flag given twice


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
    choices = {flag.name: flag.choices_in(release) or () for flag in FLAGS if flag.dated}
    return OptionTable(release, takes, choices, frozenset(data["not_in_yaml"][release]))


@lru_cache
def memory_table() -> OptionTable:
    """The memory flags alone, of every release."""
    arity: dict[str, int | str] = {"flag": 0, "switch": 0, "ints": "+"}
    takes = {option: arity.get(flag.kind, 1) for option, flag in FLAG_OF_OPTION.items()}
    return OptionTable("", takes, {}, frozenset())


def releases_with(option: str) -> tuple[str, ...]:
    """The releases that have `option` (a full spelling), oldest first; empty for one no release has."""
    data = _engine_flags()
    entry = data["options"].get(option)
    if entry is None:
        return ()
    return tuple(entry[1] if isinstance(entry, list) else data["releases"])


def find_option(word: Word, table: OptionTable) -> tuple[str | None, str | None]:
    """(full option, value after `=`) of one word; (None, None) for a plain value, ("", ...) for an unknown option.

    The rules are argparse's, which the engine keeps: an exact spelling, then one before `=`, then a unique
    beginning. Raises InputError for a beginning that several options share.
    """
    text = word.text
    if len(text) < 2 or text[0] != "-":
        return None, None
    if text in table.takes:
        return text, None
    start, equals, after = text.partition("=")
    value = after if equals else None
    if equals and start in table.takes:
        return start, value
    if start.startswith("--") and len(start) > 2:
        found = [option for option in table.takes if option.startswith(start)]
        if len(found) == 1:
            return found[0], value
        if found:
            raise InputError(f"{word.place}: {start} is ambiguous; write one of {', '.join(sorted(found)[:8])}")
    if _NEGATIVE_NUMBER.fullmatch(text) or " " in text:
        return None, None
    return "", value


def read_options(words: Sequence[Word], table: OptionTable) -> Options:
    """Read option words. Raises InputError that points at a missing, superfluous or wrong value.

    An option that `table` does not know keeps the plain words after it to itself and is named in `unknown`.
    """
    if len(words) > _MOST_WORDS:
        raise InputError(f"the launch command has {len(words)} words; more than {_MOST_WORDS} are not read")
    options = Options()
    found = [find_option(word, table) for word in words]
    at = 0
    while at < len(words):
        word = words[at]
        option, attached = found[at]
        at += 1
        if option is None:
            _stray(word, words[at - 2] if at > 1 else None)
        first = at
        while at < len(words) and found[at][0] is None:
            at += 1
        values = list(words[first:at])
        if attached is not None:
            if values and option:
                _stray(values[0], word)
            values = [Word(attached, word.place, word.undefined)]
        if not option:
            _unknown(options, word, table)
            continue
        _check_values(option, word, values, table.takes[option], attached is not None)
        flag = FLAG_OF_OPTION.get(option)
        if flag is not None:
            _keep(options, flag, option, word, values, table)
        else:
            option = _NAMED.get(option, option)
            if option in options.other:
                options.repeated.append(f"{option} is given twice; the engine takes the last ({word.place})")
            options.other[option] = values[-1] if values else Word("", word.place)
            options.ignored += option not in _NAMED
    return options


def _stray(word: Word, before: Word | None) -> None:
    if word.undefined:
        raise InputError(f"{word.place}: {word.undefined} is not defined here; define it or write its value")
    after = f" (after {before.text.partition('=')[0]!r})" if before is not None else ""
    raise InputError(f"{word.place}: {word.text[:60]!r} belongs to no flag{after}; remove it or add the flag")


def _check_values(option: str, word: Word, values: list[Word], takes: int | str, attached: bool) -> None:
    """Raise InputError unless `option` takes these values; a superfluous one is an error, as in the engine."""
    if takes == 0 and attached:
        raise InputError(f"{word.place}: {option} takes no value; leave {'=' + values[0].text!r} out")
    if takes in (1, "+") and not values:
        raise InputError(f"{word.place}: {option} needs a value; none follows it")
    most = {0: 0, 1: 1, "?": 1}.get(takes, len(values))
    if len(values) > most:
        _stray(values[most], values[most - 1] if most else word)


def _unknown(options: Options, word: Word, table: OptionTable) -> None:
    option = word.text.partition("=")[0]
    if word.undefined:
        _stray(word, None)
    flag = FLAG_OF_OPTION.get(option)
    if flag is not None or not table.release:
        there = ", ".join(releases_with(option))
        where = f"not a flag of {table.release}; {there} have it" if flag else "not a flag that touches memory"
        raise InputError(f"{word.place}: {printable(option)} is {where}")
    options.unknown.append(option)


def _keep(options: Options, flag: Flag, option: str, word: Word, values: list[Word], table: OptionTable) -> None:
    for value in values:
        if value.undefined:
            raise InputError(
                f"{value.place}: {option} is given {value.undefined}, which is not defined here; "
                "define it in the text or write its value"
            )
    choices = table.choices.get(flag.name)
    read = [read_value(flag, value.text, choices, value.place) for value in values]
    new: object = option in flag.options if flag.kind in ("flag", "switch") else read
    if flag.kind not in ("flag", "switch", "ints"):
        new = read[0]
    if flag.name in options.flags:
        options.repeated.append(
            f"{option} is given twice ({options.positions[flag.name]}: {options.flags[flag.name]}, "
            f"{word.place}: {new}); the engine takes the last"
        )
    options.flags[flag.name] = new
    options.positions[flag.name] = word.place
