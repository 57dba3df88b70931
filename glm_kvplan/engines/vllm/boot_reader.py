"""A vLLM log read line by line: one `Boot` a server start."""

import re
from dataclasses import dataclass, field

from glm_kvplan.engines.flag import check_value
from glm_kvplan.engines.own_lines import OwnLines
from glm_kvplan.engines.printed_fields import fields_of, literal
from glm_kvplan.engines.vllm.boot_lines import (
    ANCHORS,
    ARGUMENTS,
    DRAFT,
    ENGINE,
    ERROR_NUMBERS,
    FACTS,
    LEAST,
    LINES,
    PREFIX,
    REFUSALS,
    RELEASE,
    Boot,
    LogLine,
    Printed,
)
from glm_kvplan.engines.vllm.flags import FLAG
from glm_kvplan.errors import InputError

LARGEST_BOOT_COUNT = 256
_LONGEST_MESSAGE = 1000
_LONGEST_ENGINE = 1 << 15  # the engine says all of its settings
_MOST_WARNINGS = 20
_MODEL = ("model_tag", "model")
_SIZED = ("available", "cache tokens")  # after these an engine does not begin anew in the same start


@dataclass(slots=True)
class _Start:
    """A boot while it is read."""

    origin: str
    release: str | None = None
    model: str | None = None
    flags: dict[str, object] | None = None  # None until the arguments are printed
    facts: dict[str, str] = field(default_factory=dict)
    printed: dict[str, Printed] = field(default_factory=dict)
    refusal: str | None = None
    warnings: list[str] = field(default_factory=list)

    @property
    def told(self) -> bool:
        """It says something of memory."""
        return bool(self.printed) or self.refusal is not None

    def read_engine(self, message: str) -> None:
        self.facts |= {name: value.strip("'\"") for name, value in FACTS.findall(message)}
        draft = DRAFT.search(message)
        if draft is not None:
            self.facts |= {"method": draft[1], "num_speculative_tokens": draft[2]}

    def read_numbers(self, message: str, number: int) -> None:
        for known in LINES:
            found = known.pattern.match(message[:_LONGEST_MESSAGE])
            if found is not None:
                self.keep(known, found, number)

    def refuse(self, raised: str, number: int) -> None:
        for known in ERROR_NUMBERS:
            found = known.pattern.search(raised[:_LONGEST_MESSAGE])
            if found is not None:
                self.keep(known, found, number)
        self.refusal = self.refusal or raised[:600]

    def keep(self, known: LogLine, found: re.Match[str], number: int) -> None:
        for name, value, step in zip(known.names, found.groups(), known.steps, strict=True):
            new, old = Printed(name, float(value.replace(",", "")), step, number), self.printed.get(name)
            if old is None or (name in LEAST and new.value < old.value):
                self.printed[name] = new

    @property
    def boot(self) -> Boot:
        flags = {} if self.flags is None else self.flags
        return Boot(
            self.release, self.model, flags, self.facts, self.printed, self.refusal, tuple(self.warnings), self.origin
        )


class LogReader:
    """See `engines.boot_logs.LogReader`."""

    def __init__(self) -> None:
        self._starts: list[_Start] = []
        self.lines = OwnLines(PREFIX, ANCHORS, lambda message: message.startswith((ARGUMENTS, ENGINE)))

    @property
    def boots(self) -> list[Boot]:
        """The starts that say something of memory."""
        return [start.boot for start in self._starts if start.told]

    def read(self, number: int, line: bytes | str) -> None:
        """Take the next line."""
        own = self.lines.read(line)
        if own is None:
            return
        message, raised = own.message, own.raised
        release = next((found[1] for pattern in RELEASE if (found := pattern.match(message))), None)
        arguments, engine = message.startswith(ARGUMENTS), message.startswith(ENGINE)
        start = self._start(number, server=release is not None or arguments, engine=engine)
        start.release = start.release or release
        if arguments:
            start.flags, start.model = _flags_of(message[len(ARGUMENTS) :], start.warnings)
        elif engine:
            start.read_engine(message[:_LONGEST_ENGINE])
        elif raised is None:
            start.read_numbers(message, number)
        elif any(words in raised[:_LONGEST_MESSAGE] for words in REFUSALS) and (own.prefix or not self.lines.sure):
            start.refuse(raised, number)  # the engine logs what it raises: a bare one is what somebody asks about

    def _start(self, number: int, *, server: bool, engine: bool) -> _Start:
        """The start a line belongs to: a server that says who it is begins one, once the last one said its memory."""
        last = self._starts[-1] if self._starts else None
        again = last is not None and (
            (server and last.told) or (engine and any(name in last.printed for name in _SIZED))
        )
        if last is None or again:
            last = _Start(f"line {number}")
            self._starts = [*self._starts[-LARGEST_BOOT_COUNT + 1 :], last]
        return last


def _flags_of(text: str, warnings: list[str]) -> tuple[dict[str, object], str | None]:
    """The memory flags of the printed arguments, a Python dictionary; and the model."""
    fields = fields_of(text, 1)
    if not text.startswith("{") or not (fields.found or fields.complete):
        _warn(warnings, "the line of non-default args cannot be read: give the launch command too")
        return {}, None
    if not fields.complete:
        _warn(
            warnings,
            "the line of non-default args is cut: flags behind the cut are taken as defaults; the launch command after "
            "-- or with --launch FILE says them",
        )
    flags: dict[str, object] = {}
    models: dict[str, str] = {}
    for each in fields.found:
        row = FLAG.get(each.name)
        if each.name not in _MODEL and (row is None or row.role != "flag"):
            continue
        try:
            value = literal(text[each.start : each.end])
            if each.name in _MODEL and isinstance(value, str):
                models[each.name] = value
            if row is None or row.role != "flag" or value is None or (row.kind == "str" and not isinstance(value, str)):
                continue
            check_value(row, value)
        except InputError as error:
            _warn(warnings, f"an argument of the log is left out: {error}")
        except ValueError:
            _warn(warnings, f"an argument of the log is left out: {each.name} is no plain value")
        else:
            flags[each.name] = value
    return flags, next((models[name] for name in _MODEL if models.get(name)), None)


def _warn(warnings: list[str], text: str) -> None:
    if len(warnings) < _MOST_WARNINGS:
        warnings.append(text)
