"""Which lines of a log are an engine's own, and their messages: one behind the logger's prefix, none from a prompt.

An engine's line has the prefix of its logger, behind what containers and collectors put in front, or it is a bare
message where the log has no prefixes (JSON formatters leave them out). All that look like none of these are somebody
else's: a request's record, or a prompt of several lines that was printed as it came.
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from glm_kvplan.engines.log_records import LONGEST_LINE, plain, unwrap

LONGEST_PREFIX = 400  # container, time stamp and rank; a message deeper in a line is somebody's prompt
_MOST_CUT = 4  # streams of which a container cuts lines; it has two
_TELLING = 1000  # characters: an engine's line of arguments is longer
# What containers and collectors put before the prefix: names, times, `service-1  | `, `(RayActor pid=7) `. A quote, a
# bracket or an equals sign more, and it is a text that quotes the engine: a prompt in a request's record.
_OUTSIDE = re.compile(r"(?:\([^()\"']{0,120}\) ?)?[^\"'(){}<>=\n]{0,400}")
_ACTOR, _WORD = re.compile(r"^\([^()]*\) ?"), re.compile(r"[\w.:/@+-]+| +")
# The same where the engine's prefix is missing.
_BARE = re.compile(r"(?:[\w./-]{1,80} {0,20}\| {0,4})?(?:\d{4}-\d\d-\d\d[T ]\S{1,40} )?")
_RAISED = re.compile(r"[\w.]{0,80}(?:Error|Exception): ")


class OwnLine(NamedTuple):
    """One line of the engine. `prefix` is the logger's, None for a bare message."""

    prefix: re.Match[str] | None
    message: str

    @property
    def raised(self) -> str | None:
        """What an exception says whose last line this is; None for another line."""
        found = _RAISED.match(self.message)
        return None if found is None else self.message[found.end() :]


class OwnLines:
    """A log taken line by line. It keeps what is known of the engine's lines: what stands around them."""

    def __init__(self, prefix: re.Pattern[str], anchors: tuple[str, ...], begins: Callable[[str], bool]) -> None:
        """`anchors`: of every line of interest a piece. `begins`: whether a message says how the server was started."""
        self._prefix, self._begins = prefix, begins
        self._anchor = re.compile("|".join(map(re.escape, anchors)))
        self._anchor_bytes = re.compile(self._anchor.pattern.encode())
        self._cut: dict[str, str] = {}  # lines that a container cut, by stream
        self.around: tuple[bool, str] | None = None  # of lines with a prefix: in a record or not, what stands outside
        self.sure = False  # a line with a prefix said how the server was started
        self._bare_in_record: bool | None = None

    def read(self, line: bytes | str) -> OwnLine | None:
        """The next line, if it may be of interest and is the engine's own."""
        if not self._cut:
            found = self._anchor.search(line) if isinstance(line, str) else self._anchor_bytes.search(line)
            if found is None:
                return None
        if isinstance(line, bytes):
            line = line[:LONGEST_LINE].decode("utf-8", "replace")
        line = line[:LONGEST_LINE].rstrip("\r\n")
        stream, text, ends = unwrap(line)
        in_record = text != line
        if stream in self._cut:
            text = (self._cut.pop(stream) + text)[:LONGEST_LINE]
        if not ends and len(text) < LONGEST_LINE and len(self._cut) < _MOST_CUT:
            self._cut[stream] = text
            return None
        text = plain(text)
        return self._own(text, in_record) if self._anchor.search(text) else None

    def _own(self, text: str, in_record: bool) -> OwnLine | None:
        found = self._prefix.search(text, 0, LONGEST_PREFIX)
        if found is None:
            return self._bare(text, in_record)
        outside = text[: found.start()]
        if _OUTSIDE.fullmatch(outside) is None:
            return None
        own = OwnLine(found, text[found.end() :].lstrip(" "))
        around = (in_record, _kind(outside))
        begins = self._begins(own.message)
        if around != self.around:
            if self.around is not None and not (begins and (not self.sure or len(own.message) > _TELLING)):
                return None
            self.around = around
        self.sure = self.sure or begins
        return own

    def _bare(self, text: str, in_record: bool) -> OwnLine | None:
        """A message without a prefix. Where others have one it must be an exception's: Python prints these itself."""
        if self.around is not None:
            found = _RAISED.search(text, 0, LONGEST_PREFIX)
            own = found is not None and self.around == (in_record, _kind(text[: found.start()]))
            return OwnLine(None, text[found.start() :]) if found and own else None
        if self._bare_in_record is None:
            self._bare_in_record = in_record
        head = _BARE.match(text)
        return OwnLine(None, text[head.end() if head else 0 :]) if self._bare_in_record == in_record else None


def _kind(outside: str) -> str:
    """What stands outside, whatever its names, numbers and times; Slurm pads its labels in front."""
    return _WORD.sub(lambda found: " " if found[0][0] == " " else "w", _ACTOR.sub("()", outside.lstrip(" ")))
