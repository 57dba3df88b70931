"""Boot logs: lines in, one `Boot` a server start out. Memory does not grow with the log."""

import re

from glm_kvplan.engines.own_lines import OwnLine, OwnLines
from glm_kvplan.engines.sglang.boot_log import log_releases as releases
from glm_kvplan.engines.sglang.boot_log import server_args
from glm_kvplan.engines.sglang.boot_log.boot import Boot, LogRank
from glm_kvplan.engines.sglang.boot_log.lines import ANCHORS, BY_ANCHOR, FAILURES, SERVER_ARGUMENTS, MessageName

LARGEST_BOOT_COUNT = 256
LONGEST_MESSAGE = 1000
WHOLE_ARGUMENTS = 300  # fields; the engine's own line has 502 or more

# The engine's prefix: `[2026-01-02 03:04:05 DP1 PP0 TP3 EP3]`.
_PREFIX = re.compile(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?((?: [A-Z_]{1,10}\d{1,6}){0,8})\]")
_PART = re.compile(r" (DP|PP|TP)(\d{1,6})")
_ANCHOR = re.compile("|".join(map(re.escape, ANCHORS)))
# The first readings of a rank; after one of its pools they belong to the next boot.
_FIRST: tuple[MessageName, ...] = ("distributed_end", "baseline", "load_begin")
_POOLS: tuple[MessageName, ...] = ("state_pool", "token_pool", "ready")


class LogReader:
    """See `engines.boot_logs.LogReader`."""

    def __init__(self) -> None:
        self.boots: list[Boot] = []
        self.lines = OwnLines(_PREFIX, ANCHORS, lambda message: message.startswith(SERVER_ARGUMENTS))

    def read(self, number: int, line: bytes | str) -> None:
        own = self.lines.read(line)
        if own is None:
            return
        if own.message.startswith(SERVER_ARGUMENTS):
            self._arguments(number, own.message[len(SERVER_ARGUMENTS) :])
            return
        message = own.message[:LONGEST_MESSAGE]
        anchor = _ANCHOR.search(message)
        shape = None if anchor is None else BY_ANCHOR.get(anchor.group())
        if shape is None:
            return
        if shape.name in FAILURES:
            if own.prefix is None and self.boots and self.boots[-1].ready:  # somebody sent an error to ask about it
                return
            message = own.raised or message
        match = shape.pattern.match(message)
        if match is None:
            return
        rank = _rank(own)
        reading = {name: value for name, value in match.groupdict().items() if value is not None}
        self._boot(number, rank, shape.name).add(rank, shape.name, reading)

    def _boot(self, number: int, rank: LogRank, name: MessageName) -> Boot:
        if not self.boots:
            return self._begin(number)
        boot = self.boots[-1]
        again = name in _FIRST and any(pool in boot.ranks.get(rank, {}) for pool in _POOLS)
        return self._begin(number) if again else boot

    def _begin(self, number: int) -> Boot:
        if len(self.boots) >= LARGEST_BOOT_COUNT:
            del self.boots[0]
        self.boots.append(Boot(f"line {number}"))
        return self.boots[-1]

    def _arguments(self, number: int, text: str) -> None:
        parsed = server_args.parse(text)
        if parsed is None:
            return
        boot = self.boots[-1] if self.boots else None
        # Every node of a server prints its arguments before any of them loads.
        if boot is None or not boot.empty or (boot.arguments and boot.arguments != parsed.values):
            boot = self._begin(number)
        boot.arguments = parsed.values
        boot.argument_names = set(parsed.names & releases.telling_names())
        boot.arguments_cut = not parsed.complete
        boot.arguments_whole = parsed.complete and len(parsed.names) >= WHOLE_ARGUMENTS


def _rank(own: OwnLine) -> LogRank:
    """Who wrote a line. A single-rank server names no rank."""
    numbers = {} if own.prefix is None else {name: int(number) for name, number in _PART.findall(own.prefix[1])}
    return LogRank(numbers.get("DP", 0), numbers.get("PP", 0), numbers.get("TP", 0))
