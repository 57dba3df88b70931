"""Log lines that a terminal's copy broke at its width, put together again: the printed arguments, then what follows."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

from glm_kvplan.engines.log_records import LONGEST_LINE, plain

WIDEST_TERMINAL = 500  # columns; a longer line was not broken by one
NARROWEST_TERMINAL = 40
_LONGEST_WORD = 32  # columns by which the rows of the arguments may all be shorter than the terminal is wide
_MOSTLY = 0.7
# `server_args={`, `server_args=ServerArgs(`, `non-default args: {`: what is so long that every terminal breaks it.
_OPENING = re.compile(r"args[=:] ?(?:\{|\w{1,40}\()")
_OPENING_BYTES = re.compile(_OPENING.pattern.encode())
# How a line of its own begins: a time stamp, a level, a process, a service, a pod, a record, or an error.
_HEAD = re.compile(
    r"\s*(?:\[?\d{4}-\d\d-\d\d[T ]|\[pod/|\[rank\d|\((?:\w{1,40} )?pid=|(?:INFO|WARNING|ERROR|DEBUG)(?: \d\d-\d\d |:)"
    r"|[\w./-]{1,80} {1,40}\| |(?:\[\d{1,6}\] )?[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d |\[\d\d:\d\d:\d\d"
    r'|Traceback \(|[\w.]{0,80}(?:Error|Exception): |\{"(?:log|message|msg|time|timestamp|textPayload)":|$)'
)


class _Brackets:
    """How deep in brackets a text ends that comes in pieces; quoted ones do not count."""

    _MARK = re.compile(r"\\.?|['\"()\[\]{}]")

    def __init__(self) -> None:
        self.depth, self.quote, self.escaped = 0, "", False

    def close_in(self, text: str) -> bool:
        """Whether the outermost bracket closes in this piece."""
        start = int(self.escaped)
        self.escaped = False
        for match in self._MARK.finditer(text, start):
            mark = match.group()
            if mark[0] == "\\":
                self.escaped = len(mark) == 1
            elif self.quote:
                self.quote = "" if mark == self.quote else self.quote
            elif mark in "'\"":
                self.quote = mark
            else:
                self.depth += 1 if mark in "([{" else -1
                if self.depth <= 0:
                    return True
        return False


class _Rows:
    """What is known of a terminal's rows: how wide, and whether words were kept whole where they were broken."""

    def __init__(self) -> None:
        self.width = 0  # 0: nothing is broken so far
        self.broken: Counter[int] = Counter()  # rows that go on in the next, by length

    def learn(self, pieces: Sequence[str]) -> None:
        self.width = max(self.width, *map(len, pieces))
        self.broken.update(map(len, pieces[:-1]))

    def forget(self) -> None:
        self.width = 0
        self.broken.clear()

    @property
    def at_words(self) -> bool:
        """Rows of many lengths; a terminal's are full, or lack the space that a copy drops."""
        full = self.broken[self.width] + self.broken[self.width - 1]
        return full < _MOSTLY * self.broken.total()


def joined(lines: Iterable[bytes]) -> Iterator[tuple[int, bytes]]:
    """(number of its first line, line), lines that a terminal broke whole again; others as they are.

    Whether a file is broken, and where, is told by the line of the server's arguments: it does not close its bracket,
    and lines without a head of their own follow. From there on a full line goes on in the next where that has no head.
    """
    rows = _Rows()
    held: _Held | None = None
    for number, line in enumerate(lines, 1):
        if held is not None:
            text = _text(line)
            if held.takes(text):
                if held.add(text):
                    yield from held.flush()
                    held = None
                continue
            yield from held.flush()
            held = None
        if not rows.width and _OPENING_BYTES.search(line) is None:
            yield number, line
            continue
        text = _text(line)
        if rows.width and len(text) > rows.width + _LONGEST_WORD:  # another log has been put behind the broken one
            rows.forget()
        held = _hold(number, line, text, rows)
        if held is None:
            yield number, line
    if held is not None:
        yield from held.flush()


def _text(line: bytes) -> str:
    return plain(line[:LONGEST_LINE].decode("utf-8", "replace").rstrip("\r\n"))


def _hold(number: int, line: bytes, text: str, rows: _Rows) -> "_Held | None":
    """The line kept until it is known how it goes on; None where it cannot go on."""
    if not NARROWEST_TERMINAL <= len(text) <= WIDEST_TERMINAL or text.lstrip()[:1] == "{":
        return None
    opening = _OPENING.search(text)
    if opening is not None:
        brackets = _Brackets()
        if not brackets.close_in(text[opening.end() - 1 :]):
            return _Held(number, line, text, rows, brackets)
    return _Held(number, line, text, rows, None) if rows.width else None


class _Held:
    """A line and the pieces that may belong to it. Arguments take what comes until their bracket closes."""

    def __init__(self, number: int, line: bytes, text: str, rows: _Rows, brackets: _Brackets | None) -> None:
        self.number, self.line, self.pieces, self.brackets = number, line, [text], brackets
        self.rows = rows
        self.size = len(text)

    def takes(self, text: str) -> bool:
        """Whether a next line goes on with this one."""
        if len(text) > WIDEST_TERMINAL or self.size + len(text) > LONGEST_LINE or _HEAD.match(text) is not None:
            return False
        return self.brackets is not None or _goes_on(self.pieces[-1], text, self.rows.width)

    def add(self, text: str) -> bool:
        """Take a piece; whether the line is whole with it."""
        self.pieces.append(text)
        self.size += len(text)
        return self.brackets is not None and self.brackets.close_in(text)

    def flush(self) -> Iterator[tuple[int, bytes]]:
        """The line whole; a piece that follows one with place left for it is a line of its own."""
        width = max(self.rows.width, *map(len, self.pieces), 0)
        last = 1
        while last < len(self.pieces) and _goes_on(self.pieces[last - 1], self.pieces[last], width):
            last += 1
        if last == 1:
            yield self.number, self.line
        else:
            self.rows.learn(self.pieces[:last])
            yield self.number, _whole(self.pieces[:last], self.rows).encode()
        for offset, piece in enumerate(self.pieces[last:], last):
            yield self.number + offset, piece.encode()


def _goes_on(piece: str, following: str, width: int) -> bool:
    """Whether the next row's first word had no place on this one."""
    return len(piece.rstrip()) + 1 + len(following.split(maxsplit=1)[0]) > width


def _whole(pieces: Sequence[str], rows: _Rows) -> str:
    """The rows as one line, with the spaces that a copy dropped at their ends."""
    whole = [pieces[0]]
    for before, piece in pairwise(pieces):
        dropped = (rows.at_words or len(before) < rows.width) and not before.endswith(" ") and piece[:1] != " "
        whole += (" ", piece) if dropped else (piece,)
    return "".join(whole)
