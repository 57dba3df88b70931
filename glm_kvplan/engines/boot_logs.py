"""Boot logs, whatever the engine: which engine wrote a log, its starts, and what is known beside it."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from glm_kvplan.engines.log_stream import read_file
from glm_kvplan.errors import InputError

if TYPE_CHECKING:
    from glm_kvplan.engines.engine import Engine


class LogReader(Protocol):
    """An engine's reader: it takes every line that may be of its own, and keeps what its boots say."""

    @property
    def boots(self) -> Sequence[Any]:
        """The server starts so far, in order."""

    def read(self, number: int, line: bytes | str) -> None:
        """Take the next line. One of somebody else changes nothing."""


class BesideLog(NamedTuple):
    """What the user says beside a log. `flags` (a launch command's) win over the printed arguments."""

    flags: Mapping[str, object] = {}
    environment: Mapping[str, str] = {}
    engine: str | None = None
    gpu: str | None = None
    model: str | None = None
    revision: str | None = None
    draft: str | None = None  # config.json of a draft model of its own


class LoggedBoots(NamedTuple):
    """The starts in a log, and the engine that wrote it."""

    engine: "Engine"
    boots: Sequence[Any]


def read_boots(path: str, engines: Sequence["Engine"], progress: Callable[[int], None] | None = None) -> LoggedBoots:
    """The starts of one of `engines` in a log ("-": standard input). Raises InputError for none, or for two."""
    readers = [(engine, engine.log_reader()) for engine in engines]
    anchors = [anchor for engine in engines for anchor in engine.log_anchors]
    for number, line in enumerate(read_file(path, anchors, progress), 1):
        for _, reader in readers:
            reader.read(number, line)
    found = [LoggedBoots(engine, reader.boots) for engine, reader in readers if reader.boots]
    if not found:
        titles = " or ".join(engine.title for engine in engines)
        raise InputError(
            f"no boot of {titles} was found: no line of its arguments, memory or pools; give the log from its start"
        )
    if len(found) > 1:
        names = " or ".join(each.engine.name for each in found)
        raise InputError(f"the log holds boots of several engines: say which with --engine {names}")
    return found[0]
