"""What one server start said of itself: its flags, and each rank's readings as the text that was printed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from glm_kvplan.engines.sglang.boot_log.lines import FAILURES, MessageName, PrintedFailure

LARGEST_RANK_COUNT = 4096
LARGEST_REPEAT = 8  # readings of one name on one rank: two runners print most of them twice

Reading = Mapping[str, str]  # number's name -> its digits as printed; a number that was not printed is absent
Readings = dict[MessageName, list[Reading]]  # of one rank


class LogRank(NamedTuple):
    """Which process spoke, from the log's prefix. A part the prefix leaves out is 0."""

    dp: int = 0
    pp: int = 0
    tp: int = 0

    def __str__(self) -> str:
        parts = (("DP", self.dp), ("PP", self.pp), ("TP", self.tp))
        return " ".join(f"{name}{number}" for name, number in parts if number or name == "TP")


@dataclass(slots=True)
class Boot:
    """One start of a server. `arguments` are the engine's resolved ones, secrets never among them."""

    origin: str
    release: str | None = None  # where it was said outright; see `releases.likely` for what a log only hints at
    arguments: dict[str, object] = field(default_factory=dict)
    argument_names: set[str] = field(default_factory=set)  # of the fields that tell releases apart
    arguments_cut: bool = False  # the line of arguments ends before it is complete
    arguments_whole: bool = False  # the line is complete and as long as the engine's own: what it lacks, it lacks
    ranks: dict[LogRank, Readings] = field(default_factory=dict)

    def add(self, rank: LogRank, name: MessageName, reading: Reading) -> None:
        """Keep a reading; a rank or a repeat beyond any real server's count is dropped."""
        if rank not in self.ranks and len(self.ranks) >= LARGEST_RANK_COUNT:
            return
        readings = self.ranks.setdefault(rank, {}).setdefault(name, [])
        if len(readings) < LARGEST_REPEAT:
            readings.append(reading)

    def every(self, name: MessageName, nth: int = 0) -> Iterator[tuple[LogRank, Reading]]:
        """The `nth` reading of that name of each rank that has one (-1: the last)."""
        for rank, readings in self.ranks.items():
            found = readings.get(name, ())
            if -len(found) <= nth < len(found):
                yield rank, found[nth]

    def first(self, name: MessageName, nth: int = 0) -> Reading | None:
        """The `nth` reading of that name on the first rank that has one."""
        return next((reading for _, reading in self.every(name, nth)), None)

    def has(self, name: MessageName) -> bool:
        return any(name in readings for readings in self.ranks.values())

    @property
    def empty(self) -> bool:
        """Nothing but perhaps arguments was read."""
        return not self.ranks

    @property
    def failure(self) -> PrintedFailure | None:
        """Why the engine itself gave up on its pools, where it said so."""
        return next((name for name in FAILURES if self.has(name)), None)

    @property
    def ready(self) -> bool:
        """The server came up: it printed its final sizes."""
        return self.has("ready")


class LoggedMemory(NamedTuple):
    """GiB as the engine takes them, the least over the ranks seen; each was printed with two decimals."""

    pre_gib: float
    available_gib: float
    target_weights_gib: float
    draft_weights_gib: float | None


def logged_memory(boot: Boot) -> LoggedMemory | None:
    """Free memory before and after the load; None where the log does not hold both.

    `available_gib` is the reading after the last weights that loaded: the draft's with speculation.
    """
    before = [float(reading["available"]) for _, reading in boot.every("load_begin")]
    after = [float(reading["available"]) for _, reading in boot.every("load_end", -1)]
    if not before or not after:
        return None
    target = [float(reading["usage"]) for _, reading in boot.every("load_end")]
    draft = [float(reading["usage"]) for _, reading in boot.every("load_end", 1)]
    return LoggedMemory(min(before), min(after), max(target), max(draft) if draft else None)
