"""From a line of a container's log to the engine's message and the rank that wrote it."""

import json
import re
from typing import Any, NamedTuple

from glm_kvplan.engines.sglang.boot_log.boot import LogRank

LONGEST_LINE = 1 << 20  # characters; the engine's longest is some 30,000

_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
# Kubernetes' own log files: `<time> stdout F message`; P marks a part of a line that was too long for one record.
_CRI = re.compile(r"\d{4}-\d\d-\d\dT\S{1,40} (stdout|stderr) ([PF]) ")
# The engine's prefix: `[2026-01-02 03:04:05 DP1 PP0 TP3 EP3]`.
_PREFIX = re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?((?: [A-Z_]{1,10}\d{1,6}){0,8})\]")
# What containers and collectors put before it: names, times, `service-1  | `, `(RayActor pid=7) `. A quote, a bracket
# or an equals sign more, and it is a text that quotes the engine: a prompt in a request's record.
_OUTSIDE = re.compile(r"(?:\([^()\"']{0,120}\) ?)?[^\"'(){}<>=]{0,400}")
# The same where the engine's prefix is missing.
_BARE = re.compile(r"(?:[\w./-]{1,80} {0,20}\| {0,4})?(?:\d{4}-\d\d-\d\d[T ]\S{1,40} )?")
_RAISED = re.compile(r"(?:[\w.-]{1,80} {0,20}\| {0,4})?[\w.]{0,80}(?:Error|Exception): ")
_PART = re.compile(r" (DP|PP|TP)(\d{1,6})")
_JSON_MESSAGE = ("log", "message", "msg", "textPayload")


class Unwrapped(NamedTuple):
    """A container record: its stream, its text, and whether the line ends with it."""

    stream: str
    text: str
    ends: bool


def unwrap(line: str) -> Unwrapped:
    """Take a Docker, Kubernetes or JSON-lines record apart; a plain line is its own text."""
    line = line.rstrip("\r\n")
    if line.lstrip()[:1] == "{":
        record = _json_record(line)
        if record is not None:
            return record
    match = _CRI.match(line)
    if match is not None:
        return Unwrapped(match.group(1), line[match.end() :], match.group(2) == "F")
    return Unwrapped("", line, True)


def _json_record(line: str) -> Unwrapped | None:
    try:
        record: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict):
        return None
    for name in _JSON_MESSAGE:
        text = record.get(name)
        if isinstance(text, str):
            # Docker cuts lines at 16 KiB: only the last record of a line ends with a line feed.
            ends = name != "log" or "stream" not in record or text.endswith("\n")
            return Unwrapped(str(record.get("stream", "")), text.rstrip("\r\n"), ends)
    return None


def plain(text: str) -> str:
    """The text without colours."""
    return _COLOUR.sub("", text) if "\x1b" in text else text


class Head(NamedTuple):
    """What stands before a message: the rank, and whether it is the engine's own prefix."""

    rank: LogRank
    prefixed: bool


def head_of(before: str, *, raised: bool = False) -> Head | None:
    """The text before a message, taken apart; None where it is no head of one of the engine's lines.

    The engine's prefix ends right before its message, and is the first one of the line. Without one the line must begin
    with the message, or (`raised`: a failure) with the exception that says it. A single-rank server names no rank.
    """
    found = _PREFIX.search(before)
    if found is None:
        whole = _BARE.fullmatch(before) or (raised and _RAISED.fullmatch(before))
        return Head(LogRank(), False) if whole else None
    after = before[found.end() :]
    if after.strip() and not (raised and _RAISED.fullmatch(after.lstrip())):
        return None
    if _OUTSIDE.fullmatch(before[: found.start()]) is None:
        return None
    numbers = {name: int(number) for name, number in _PART.findall(found[1])}
    return Head(LogRank(numbers.get("DP", 0), numbers.get("PP", 0), numbers.get("TP", 0)), True)
