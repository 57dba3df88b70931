"""What a sweep says of a point: columns that every engine fills, and the seam to an engine's own.

An engine's `answers/sweep_point.py` is a `Sweeping`: its columns, COMMON first, and how a plan becomes a point.
"""

from collections.abc import Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from glm_kvplan.certainty import Whose
from glm_kvplan.show.said import Text, say

if TYPE_CHECKING:
    from glm_kvplan.engines.protocol import Engine
    from glm_kvplan.memory.given import MemoryGiven
    from glm_kvplan.workload import Demand


ResultKind = Literal["int", "float", "text", "flag"]


class Column(NamedTuple):
    """A value may always be missing (None); a flag is on or off.

    `whose` number it is: "deployment" (all GPUs), "worker" (one scheduler with pools of its own), "GPU", or "request"
    (one request, on one GPU). Tables show the columns with a title; where they are too narrow, the lowest `spare` goes
    first.
    """

    name: str
    kind: ResultKind
    help: str
    whose: Whose | Literal["request", ""] = ""
    title: Text = ""
    spare: int = 0


STATUS = Column("status", "text", "ok or refused")
REASON = Column("reason", "text", "why the point is refused")

# What there is at least, and what an order goes by where none is asked for.
SERVED, SERVED_PER_GPU, SERVED_BOUND_BY, CERTAINTY = "served", "served_per_gpu", "served_bound_by", "certainty"
UPPER_BOUND = "upper bound"  # a certainty that is a warning
COMMON = (
    Column("gpus", "int", "GPUs of the deployment", "deployment", say("GPUs")),
    Column(SERVED, "int", "requests of the workload that fit at once", "deployment", say("requests at once")),
    Column(SERVED_PER_GPU, "float", "the same, divided by the GPUs", "deployment", say("at once per GPU"), 7),
    Column(SERVED_BOUND_BY, "text", "what stops one more", "deployment", say("bound by")),
    Column("longest_context", "int", "tokens one request can have", "request", say("longest context"), 2),
    Column("request_bytes", "int", "bytes of one at the workload's longest context", "request", say("per request"), 6),
    Column("fixed_bytes", "int", "bytes of one before its first token", "request", say("of it fixed"), 5),
    Column("token_bytes", "int", "bytes of one token", "request", say("per token"), 1),
    Column("cache_bytes", "int", "bytes of the caches on all GPUs", "deployment", say("caches of all GPUs"), 3),
    Column(CERTAINTY, "text", "derived from memory that was read, estimated, or an upper bound"),
)
# Of these a sweep of one engine shows no more than this many in a table; its own follow.
LEADING = 4


class Point(Protocol):
    """A server that starts."""

    @property
    def context_length(self) -> int:
        """Tokens of the longest request it takes."""

    def values(self, demand: "Demand") -> tuple[Any, ...]:
        """One value for each of the engine's columns. Raises InputError for a demand nothing can serve."""


class Sweeping(Protocol):
    """An engine's points."""

    COLUMNS: tuple[Column, ...]  # COMMON, then its own
    CONTEXT_FLAG: str  # the flag that says the longest request
    ADVICE: Mapping[str, Text]  # what a `certainty` asks for

    def size_point(self, plan: Any, given: "MemoryGiven", prompt_tokens: int | None) -> Point:
        """Start `plan`. Raises RefusedError where the engine refuses, InputError for memory that cannot be."""


def sweeping(engine: "Engine") -> Sweeping:
    return _sweeping(engine.name)


@cache
def _sweeping(name: str) -> Sweeping:
    found: Any = import_module(f"glm_kvplan.engines.{name}.answers.sweep_point")
    made: Sweeping = found
    return made


def result_columns(engines: Sequence["Engine"]) -> tuple[Column, ...]:
    """What is said of every point: all that one engine says, or what several say alike."""
    return sweeping(engines[0]).COLUMNS if len(engines) == 1 else COMMON
