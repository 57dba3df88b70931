"""What CI formats are made from: files, and what was found of each, in words."""

from collections.abc import Mapping
from typing import NamedTuple


class Place(NamedTuple):
    """A line of a file."""

    path: str
    line: int


class Judged(NamedTuple):
    """One thing found in a file. `status`: holds, fails, warns, tolerated, or unusable (the file itself). `line` is the
    file's own that speaks of it, `cause` the line of another file that does it, where one is known.

    `expected` ones were asked for, the others are remarks. `outcome` is what came of it, `details` what binds and what
    would help, `sentence` all of that in one line; `reason` is why it is tolerated.
    """

    rule: str
    status: str
    line: int
    expected: bool
    title: str
    outcome: str
    details: tuple[str, ...]
    sentence: str
    reason: str
    cause: Place | None = None


class JudgedFile(NamedTuple):
    path: str
    found: tuple[Judged, ...]


class JudgedFiles(NamedTuple):
    """`summary` is the outcome of all in a line, `meanings` says what each rule is about."""

    tool: str
    version: str
    files: tuple[JudgedFile, ...]
    summary: str
    meanings: Mapping[str, str]
