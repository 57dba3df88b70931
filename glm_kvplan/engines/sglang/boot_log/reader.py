"""Boot logs: lines in, one `Boot` a server start out. Memory does not grow with the log."""

import re

from glm_kvplan.engines.log_records import LONGEST_LINE, plain, unwrap
from glm_kvplan.engines.sglang.boot_log import log_releases as releases
from glm_kvplan.engines.sglang.boot_log import server_args
from glm_kvplan.engines.sglang.boot_log.boot import Boot, LogRank
from glm_kvplan.engines.sglang.boot_log.line_head import Head, head_of
from glm_kvplan.engines.sglang.boot_log.lines import ANCHORS, BY_ANCHOR, FAILURES, SERVER_ARGUMENTS

LARGEST_BOOT_COUNT = 256
LONGEST_PREFIX = 400  # container, time stamp and rank; a message deeper in a line is somebody's prompt
LONGEST_MESSAGE = 1000
WHOLE_ARGUMENTS = 300  # fields; the engine's own line has 502 or more

_ANCHOR = re.compile("|".join(map(re.escape, ANCHORS)))
_ANCHOR_BYTES = re.compile(_ANCHOR.pattern.encode())
# The first readings of a rank; after one of its pools they belong to the next boot.
_FIRST = ("distributed_end", "baseline", "load_begin")
_POOLS = ("state_pool", "token_pool", "ready")


class LogReader:
    """See `engines.boot_logs.LogReader`."""

    def __init__(self) -> None:
        self.boots: list[Boot] = []
        self.pending: dict[str, str] = {}  # lines that a container cut, by stream
        self.wrapped: bool | None = None  # lines of the engine come in records of a container or collector, or bare
        self.in_record = False  # the line at hand does
        self.prefixed = False  # the engine's prefix was seen: from then on a line without it is somebody else's

    def read(self, number: int, line: bytes | str) -> None:
        if not self.pending:
            found = _ANCHOR.search(line) if isinstance(line, str) else _ANCHOR_BYTES.search(line)
            if found is None:
                return
        if isinstance(line, bytes):
            line = line[:LONGEST_LINE].decode("utf-8", "replace")
        stream, text, ends = unwrap(line[:LONGEST_LINE])
        self.in_record = text != line[:LONGEST_LINE].rstrip("\r\n")
        if stream in self.pending:
            text = (self.pending.pop(stream) + text)[:LONGEST_LINE]
        if not ends and len(text) < LONGEST_LINE:
            self.pending[stream] = text
            return
        self._message(number, plain(text))

    def _message(self, number: int, text: str) -> None:
        anchor = _ANCHOR.search(text)
        if anchor is None:
            return
        if anchor.group() == SERVER_ARGUMENTS:
            if self._head(text[: anchor.start()]) is not None:
                self._arguments(number, text[anchor.end() :])
            return
        shape = BY_ANCHOR[anchor.group()]
        text = text[: LONGEST_PREFIX + LONGEST_MESSAGE]
        match = shape.pattern.search(text)
        head = None if match is None else self._head(text[: match.start()], raised=shape.name in FAILURES)
        if match is None or head is None:
            return
        rank = head.rank
        reading = {name: value for name, value in match.groupdict().items() if value is not None}
        self._boot(number, rank, shape.name).add(rank, shape.name, reading)

    def _head(self, before: str, *, raised: bool = False) -> Head | None:
        """What stands before a message of the engine; None where the line is not one of its own."""
        if len(before) > LONGEST_PREFIX:
            return None
        head = head_of(before, raised=raised)
        if head is None or (self.prefixed and not head.prefixed and not raised):
            return None
        if self.wrapped not in (None, self.in_record):  # a request's JSON between plain lines
            return None
        self.wrapped = self.in_record
        self.prefixed = self.prefixed or head.prefixed
        return head

    def _boot(self, number: int, rank: LogRank, name: str) -> Boot:
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
