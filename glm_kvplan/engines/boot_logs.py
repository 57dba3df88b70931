"""Boot logs, whatever the engine: which engine wrote a log, its starts, and what is known beside it."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from glm_kvplan.engines.log_stream import read_file
from glm_kvplan.engines.own_lines import OwnLines
from glm_kvplan.engines.wrapped_lines import joined
from glm_kvplan.errors import InputError
from glm_kvplan.memory.gpu import Gpu, find_gpu

if TYPE_CHECKING:
    from glm_kvplan.engines.protocol import Engine


CARD_ERROR = 0.6  # GiB that what CUDA calls a card's memory may differ from the table's, which is nvidia-smi's


class LogReader(Protocol):
    """An engine's reader: it takes every line that may be of its own, and keeps what its boots say."""

    @property
    def boots(self) -> Sequence[Any]:
        """The server starts so far, in order."""

    @property
    def lines(self) -> OwnLines:
        """How it knows the engine's own lines."""

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

    def card(self, origin: str, shown_gib: float | None) -> Gpu | None:
        """The card that the user names, if any. `shown_gib` is what the log of `origin` shows of one: all of it, or
        what was free.

        Raises InputError for a card that has less, by more than the tables of two tools differ.
        """
        if self.gpu is None:
            return None
        gpu = find_gpu(self.gpu)
        if shown_gib is not None and shown_gib > gpu.memory_mib / 1024 + CARD_ERROR:
            raise InputError(
                f"--gpu {self.gpu}: {origin} shows {shown_gib:.2f} GiB on a card, and {gpu.name} has "
                f"{gpu.memory_mib / 1024:.2f}; name the card that it ran on, or leave --gpu out"
            )
        return gpu


class LoggedBoots(NamedTuple):
    """The starts in a log, and the engine that wrote it."""

    engine: "Engine"
    boots: Sequence[Any]


# `prefill-1  | ` of Docker Compose; `[pod/decode-0/server] ` of kubectl logs --prefix.
_SERVICE = re.compile(r"(?:\x1b\[[0-9;]{0,12}m)?(?:([\w./-]{1,80}) {1,40}\| |\[(pod/[\w./-]{1,200})\] )")
_SERVICE_BYTES = re.compile(_SERVICE.pattern.encode())
_MOST_SERVICES = 64


def read_boots(path: str, engines: Sequence["Engine"], progress: Callable[[int], None] | None = None) -> LoggedBoots:
    """The starts of one of `engines` in a log ("-": standard input). Raises InputError for none, or for two.

    Lines of several servers that a collector has put into one log are read apart where their arguments differ; nodes
    of one server stay together.
    """
    together = [(engine, engine.log_reader()) for engine in engines]
    apart: dict[str, list[LogReader]] = {}
    anchors = [anchor for engine in engines for anchor in engine.log_anchors]
    for number, line in joined(read_file(path, anchors, progress)):
        for _, reader in together:
            reader.read(number, line)
        service = _service(line)
        if service and (service in apart or len(apart) < _MOST_SERVICES):
            for reader in apart.setdefault(service, [engine.log_reader() for engine in engines]):
                reader.read(number, line)
    found = []
    for at, (engine, reader) in enumerate(together):
        same = [readers[at] for readers in apart.values() if readers[at].lines.around == reader.lines.around]
        servers = [each.boots for each in same if each.boots]
        boots = [boot for boots in servers for boot in boots] if _differ(servers) else reader.boots
        if boots:
            found.append(LoggedBoots(engine, boots))
    if not found:
        titles = " or ".join(engine.title for engine in engines)
        raise InputError(
            f"no boot of {titles} was found: no line of its arguments, memory or pools; give the log from its start"
        )
    # An engine that said itself how it was started; about the other one's lines somebody asked.
    sure = [engine for engine, reader in together if reader.lines.sure]
    found = [each for each in found if each.engine in sure] or found
    if len(found) > 1:
        names = " or ".join(each.engine.name for each in found)
        raise InputError(f"the log holds boots of several engines: say which with --engine {names}")
    return found[0]


def _service(line: bytes | str) -> str:
    """Which of several servers a line is of, as a collector says; "" where none does."""
    found = _SERVICE.match(line) if isinstance(line, str) else _SERVICE_BYTES.match(line)
    if found is None:
        return ""
    name = found[1] or found[2]
    return name if isinstance(name, str) else name.decode("utf-8", "replace")


def _differ(servers: Sequence[Sequence[Any]]) -> bool:
    """Whether the last starts of several servers were given other arguments. Where one printed none, nobody knows."""
    last = [boots[-1].arguments for boots in servers]
    return any(arguments and last[0] and arguments != last[0] for arguments in last[1:])
