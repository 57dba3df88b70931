"""What stands before a message of the engine in a line of its log: the rank that wrote it."""

import re
from typing import NamedTuple

from glm_kvplan.engines.sglang.boot_log.boot import LogRank

# The engine's prefix: `[2026-01-02 03:04:05 DP1 PP0 TP3 EP3]`.
_PREFIX = re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?((?: [A-Z_]{1,10}\d{1,6}){0,8})\]")
# What containers and collectors put before it: names, times, `service-1  | `, `(RayActor pid=7) `. A quote, a bracket
# or an equals sign more, and it is a text that quotes the engine: a prompt in a request's record.
_OUTSIDE = re.compile(r"(?:\([^()\"']{0,120}\) ?)?[^\"'(){}<>=]{0,400}")
# The same where the engine's prefix is missing.
_BARE = re.compile(r"(?:[\w./-]{1,80} {0,20}\| {0,4})?(?:\d{4}-\d\d-\d\d[T ]\S{1,40} )?")
_RAISED = re.compile(r"(?:[\w.-]{1,80} {0,20}\| {0,4})?[\w.]{0,80}(?:Error|Exception): ")
_PART = re.compile(r" (DP|PP|TP)(\d{1,6})")


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
