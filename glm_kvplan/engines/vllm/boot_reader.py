"""A vLLM log read line by line: one `Boot` a server start."""

import ast
import re
from dataclasses import dataclass, field

from glm_kvplan.engines.flag import check_value
from glm_kvplan.engines.log_records import LONGEST_LINE, plain, unwrap
from glm_kvplan.engines.vllm.boot_lines import (
    ANCHORS,
    ARGUMENTS,
    DRAFT,
    ENGINE,
    ERROR,
    FACTS,
    LEAST,
    LINES,
    REFUSALS,
    RELEASE,
    Boot,
    Printed,
    found_in,
)
from glm_kvplan.engines.vllm.flags import FLAG
from glm_kvplan.errors import InputError

LARGEST_BOOT_COUNT = 256
_ANCHOR = re.compile("|".join(map(re.escape, ANCHORS)))
_ANCHOR_BYTES = re.compile(_ANCHOR.pattern.encode())
_MOST_FIELDS_CUT = 16  # of a line that was cut: as many of its last commas may stand inside what was cut
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
        self._pending: dict[str, str] = {}  # lines that a container cut, by stream

    @property
    def boots(self) -> list[Boot]:
        """The starts that say something of memory."""
        return [start.boot for start in self._starts if start.told]

    def read(self, number: int, line: bytes | str) -> None:
        """Take the next line."""
        if not self._pending:
            found = _ANCHOR.search(line) if isinstance(line, str) else _ANCHOR_BYTES.search(line)
            if found is None:
                return
        if isinstance(line, bytes):
            line = line[:LONGEST_LINE].decode("utf-8", "replace")
        stream, text, ends = unwrap(line[:LONGEST_LINE])
        if stream in self._pending:
            text = (self._pending.pop(stream) + text)[:LONGEST_LINE]
        if not ends and len(text) < LONGEST_LINE:
            self._pending[stream] = text
            return
        self._message(number, plain(text))

    def _message(self, number: int, line: str) -> None:
        release = next((found[1] for pattern in RELEASE if (found := found_in(pattern, line))), None)
        arguments, engine = found_in(ARGUMENTS, line), found_in(ENGINE, line)
        start = self._start(number, server=release is not None or arguments is not None, engine=engine is not None)
        start.release = start.release or release
        if arguments is not None:
            start.flags, start.model = _flags_of(arguments[1], start.warnings)
        if engine is not None:
            start.facts |= {name: value.strip("'\"") for name, value in FACTS.findall(line)}
            draft = DRAFT.search(line)
            if draft is not None:
                start.facts |= {"method": draft[1], "num_speculative_tokens": draft[2]}
        for known in LINES:
            found = found_in(known.pattern, line)
            if found is None:
                continue
            for name, value, step in zip(known.names, found.groups(), known.steps, strict=True):
                _keep(start.printed, Printed(name, float(value.replace(",", "")), step, number))
        if start.refusal is None and found_in(ERROR, line) is not None and any(words in line for words in REFUSALS):
            start.refusal = line[line.index("Error") + len("Error") :].strip(": ")[:600]

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


def _keep(printed: dict[str, Printed], new: Printed) -> None:
    old = printed.get(new.name)
    if old is None or (new.name in LEAST and new.value < old.value):
        printed[new.name] = new


def _literal(text: str) -> dict[str, object] | None:
    """A Python dictionary; None for a text that is none."""
    try:
        given = ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None
    return {name: value for name, value in given.items() if isinstance(name, str)} if isinstance(given, dict) else None


def _before_the_cut(text: str) -> dict[str, object] | None:
    """The fields that stand whole in a dictionary whose end is missing."""
    if text.rstrip().endswith("}"):
        return None  # not cut: it holds what is no literal
    for _ in range(_MOST_FIELDS_CUT):
        text = text.rpartition(",")[0]
        given = _literal(text + "}") if text else None
        if given is not None:
            return given
    return None


def _flags_of(text: str, warnings: list[str]) -> tuple[dict[str, object], str | None]:
    """The memory flags of the printed arguments, a Python dictionary; and the model."""
    given = _literal(text.strip())
    if given is None:
        given = _before_the_cut(text)
        if given is None:
            warnings.append("the line of non-default args cannot be read: give the launch command too")
            return {}, None
        warnings.append(
            "the line of non-default args is cut: flags behind the cut are taken as defaults; the launch command after "
            "-- or with --launch FILE says them"
        )
    flags: dict[str, object] = {}
    for name, value in given.items():
        row = FLAG.get(name)
        if row is None or row.role != "flag" or value is None:
            continue
        if row.kind == "str" and not isinstance(value, str):
            continue
        try:
            check_value(row, value)
        except InputError as error:
            warnings.append(f"an argument of the log is left out: {error}")
            continue
        flags[name] = value
    model = given.get("model_tag") or given.get("model")
    return flags, model if isinstance(model, str) else None
