"""A line of a container's log taken apart: Docker, Kubernetes and JSON-lines records, colours."""

import json
import re
from typing import Any, NamedTuple

LONGEST_LINE = 1 << 20  # characters; an engine's longest is some 30,000

_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
# Kubernetes' own log files: `<time> stdout F message`; P marks a part of a line that was too long for one record.
_CRI = re.compile(r"\d{4}-\d\d-\d\dT\S{1,40} (stdout|stderr) ([PF]) ")
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
