"""Option words matched to an engine's flags, the way argparse matches them: both engines parse with it."""

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from glm_kvplan.engines.flag import Flag, read_value
from glm_kvplan.errors import InputError
from glm_kvplan.launch.marked_words import Word, defined, printable
from glm_kvplan.reading.secret_words import Concealed, key_like, like, option_shown, public, quoted

_NEGATIVE_NUMBER = re.compile(r"-\d+|-\d*\.\d+")
_PLAIN = re.compile(r"[\w./:,+=-]{1,200}")  # a value that a shell takes as it stands, and no address with a password is
_MOST_WORDS = 5000  # of one command; a real one has a fiftieth of it


class OptionTable(NamedTuple):
    """The options of one release: what each takes (0, 1, "?", "*" or "+"), and what is known of it."""

    release: str
    takes: Mapping[str, int | str]
    flags: Mapping[str, Flag]  # the memory flag that an option spells
    named: Mapping[str, str]  # options that are read though they are no memory flags, and the spelling they are kept by
    beside: Mapping[str, str]  # options that take or free GPU memory that is not planned, and what to do about each
    not_in_yaml: frozenset[str]
    checked: Mapping[str, Flag]  # options that move no memory but may keep the server from starting
    outside: Callable[[str], Flag]  # what an option outside the memory flags takes
    releases_with: Callable[[str], tuple[str, ...]]  # of an option, oldest first
    # the value of a flag's text, as the engine reads it: (flag, text, choices, place)
    value: Callable[[Flag, str, tuple[str, ...] | None, str], object] = read_value
    twin: Callable[[str], str | None] = lambda option: None  # what the engine calls another engine's flag


@dataclass(slots=True)
class Options:
    """What option words say: memory flags by name, the engine's other options counted, the rest named."""

    flags: dict[str, object] = field(default_factory=dict)
    checked: dict[str, object] = field(default_factory=dict)  # flags that move no memory but may keep it from starting
    other: dict[str, Word] = field(default_factory=dict)  # options that touch no memory, with their last value
    ignored: int = 0  # how many of those stood there
    unknown: dict[str, str] = field(default_factory=dict)  # and where each stood
    positions: dict[str, str] = field(default_factory=dict)  # flag name: where its value stood
    repeated: list[str] = field(default_factory=list)  # a line for each flag given twice
    typed: dict[str, str] = field(default_factory=dict)  # options of `other` as one would type them; no secrets


def find_option(word: Word, table: OptionTable) -> tuple[str | None, str | None]:
    """(full option, value after `=`) of one word; (None, None) for a plain value, ("", ...) for an unknown option.

    The rules are argparse's, which the engine keeps: an exact spelling, then one before `=`, then a unique
    beginning; the value of an option of one letter may stand behind it (`-n2`). Raises InputError for a beginning that
    several options share.
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
    single = not start.startswith("--")
    if single or len(start) > 2:
        begun = text if single else start
        found = [option for option in table.takes if option.startswith(begun) or (single and option == text[:2])]
        if len(found) == 1:
            return found[0], text[2:] if found[0] == text[:2] else value
        if found:
            shown = option_shown(like(start, text))
            raise InputError(f"{word.place}: {shown} is ambiguous; write one of {', '.join(sorted(found)[:8])}")
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
            _stray(word)
        first = at
        while at < len(words) and found[at][0] is None:
            at += 1
        values = list(words[first:at])
        if attached is not None:
            if values and option:
                _stray(values[0], option)
            values = [word._replace(text=like(attached, word.text))]
        if not option:
            _unknown(options, word, table)
            continue
        _check_values(option, word, values, table.takes[option], attached is not None)
        flag = table.flags.get(option)
        if flag is not None:
            _keep(options, flag, option, word, values, table)
        else:
            _keep_outside(options, table.named.get(option, option), word, values, table)
    return options


def _stray(word: Word, option: str = "") -> None:
    """A word that belongs to no flag; `option` is the last one before it."""
    if word.mark is not None:
        raise InputError(f"{word.place}: {word.mark.complaint}")
    after = f" (after {option!r})" if option else ""
    raise InputError(f"{word.place}: {quoted(word.text, option)} belongs to no flag{after}; remove it or add the flag")


def _check_values(option: str, word: Word, values: list[Word], takes: int | str, attached: bool) -> None:
    """Raise InputError unless `option` takes these values; a superfluous one is an error, as in the engine."""
    if takes == 0 and attached:
        raise InputError(f"{word.place}: {option} takes no value; leave its value out")
    if takes in (1, "+") and not values:
        raise InputError(f"{word.place}: {option} needs a value; none follows it")
    most = {0: 0, 1: 1, "?": 1}.get(takes, len(values))
    if len(values) > most:
        _stray(values[most], option)


def _unknown(options: Options, word: Word, table: OptionTable) -> None:
    option = word.text.partition("=")[0]
    if word.mark is not None:
        _stray(word)
    if option in table.flags:
        there = ", ".join(table.releases_with(option))
        raise InputError(f"{word.place}: {printable(option)} is not a flag of {table.release}; {there} have it")
    twin = table.twin(option)
    if twin is not None:
        raise InputError(f"{word.place}: {printable(option)} is a flag of another engine; here it is {twin}")
    options.unknown.setdefault(option_shown(like(option, word.text)), word.place)


def _keep_outside(options: Options, option: str, word: Word, values: list[Word], table: OptionTable) -> None:
    """Keep an option that touches no memory; its value too where a start-up check of the engine reads it."""
    if option in options.other:
        options.repeated.append(f"{option} is given twice; the engine takes the last ({word.place})")
    options.other[option] = values[-1] if values else Word("", word.place)
    options.ignored += option not in table.named
    options.typed[option] = "" if word.mark is not None else _typed(option, values)
    if word.mark is not None or any(value.mark is not None for value in values):
        return
    outside = table.outside(option)
    read = [read_value(outside, value.text, None, value.place) for value in values]
    row = table.checked.get(option)
    if row is None:
        return
    if row.kind in ("flag", "switch"):
        options.checked[row.name] = option in row.options
    elif row.kind == "words":
        options.checked[row.name] = [value.text for value in values]
    else:
        options.checked[row.name] = True if row.kind == "present" else read[0]


def _typed(option: str, values: Sequence[Word]) -> str:
    """An option as one would type it; empty where a value is not known here, is more than a plain word, or may be a
    secret.
    """
    if key_like(option) and values:
        return ""
    for value in values:
        hidden = isinstance(value.text, Concealed) or value.mark is not None or key_like(value.text)
        if hidden or _PLAIN.fullmatch(value.text) is None:
            return ""
    return " ".join((option, *(value.text for value in values)))


def _require_known(option: str, word: Word, values: list[Word]) -> None:
    if word.mark is not None and "=" not in word.text:
        raise InputError(f"{word.place}: whether {option} stands here depends on {word.mark.asked}")
    for value in values:
        defined(value, option)


def _keep(options: Options, flag: Flag, option: str, word: Word, values: list[Word], table: OptionTable) -> None:
    _require_known(option, word, values)
    choices = flag.choices_in(table.release)
    read = [table.value(flag, value.text, choices, value.place) for value in values]
    new: object = option in flag.options if flag.kind in ("flag", "switch") else read
    if flag.kind not in ("flag", "switch", "ints"):
        new = read[0]
    new = public(new)
    if flag.name in options.flags:
        options.repeated.append(
            f"{option} is given twice ({options.positions[flag.name]}: {options.flags[flag.name]}, "
            f"{word.place}: {new}); the engine takes the last"
        )
    options.flags[flag.name] = new
    options.positions[flag.name] = word.place


def laid_over(above: Options, below: Options) -> Options:
    """Both together: what stands above wins."""
    return Options(
        {**below.flags, **above.flags},
        {**below.checked, **above.checked},
        {**below.other, **above.other},
        below.ignored + above.ignored,
        {**below.unknown, **above.unknown},
        {**below.positions, **above.positions},
        [*below.repeated, *above.repeated],
        {**below.typed, **above.typed},
    )


def others(options: Options, table: OptionTable) -> Mapping[str, str]:
    """The options that are kept under no flag's name, as one would type them; empty where a value is not kept."""
    read = {table.named[option] for option in ("--model", "--model-path", "--config") if option in table.named}
    kept = {option for option, row in table.checked.items() if row.kind != "present"}
    return {option: options.typed.get(option, "") for option in options.other if option not in read | kept}


def warnings_of(options: Options, table: OptionTable) -> list[str]:
    """A line for each flag given twice, one for all unknown flags, one for memory that is not planned here."""
    lines = list(options.repeated)
    unplanned = sorted(table.beside.keys() & options.other.keys())
    if unplanned:
        lines.append(f"these take or free GPU memory that is not planned here: {', '.join(unplanned)}")
    advice: dict[str, list[str]] = {}
    for option in unplanned:
        if table.beside[option]:
            advice.setdefault(table.beside[option], []).append(option)
    lines += [f"{', '.join(named)}: {text}" for text, named in advice.items()]
    if options.unknown:
        lines.append(f"unknown to engine {table.release}, left out: {_named(options, table)}")
    return lines


def refuse_unknown(options: Options, table: OptionTable) -> None:
    """Refuse options that the release does not have, as its own parser does. Raises InputError."""
    if options.unknown:
        place = next(iter(options.unknown.values()))
        raise InputError(
            f"{place}: unknown to engine {table.release}, which would not start: {_named(options, table)}; "
            "a patched build is planned by --engine FILE.toml"
        )


def _named(options: Options, table: OptionTable) -> str:
    """The unknown options, a hint beside each."""
    named = [_with_hint(option, table) for option in options.unknown]
    return ", ".join(named[:12]) + (f" and {len(named) - 12} more" if len(named) > 12 else "")


def _with_hint(option: str, table: OptionTable) -> str:
    there = table.releases_with(option)
    if there:
        return f"{option} (in {', '.join(there)})"
    near = difflib.get_close_matches(option, table.takes, 1, 0.85) if len(option) < 80 else []
    return f"{option} (is it {near[0]}?)" if near else printable(option)
