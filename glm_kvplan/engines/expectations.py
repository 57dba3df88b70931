"""What can be expected of a deployment, and what an engine answers: the words between `kvplan check` and an engine."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from glm_kvplan.contexts import Contexts, one_length

# The expectations of a file, in the order they are reported; `boots` is expected of every file.
EXPECTATIONS = {
    "boots": "the engine starts",
    "min_context": "one request of this many tokens is served",
    "min_concurrency": "this many requests run at once, each min_context tokens long, or as contexts say (without "
    "both: of any length)",
    "min_total_tokens": "token places of all token pools",
    "max_running_requests": "running requests the engine grants, at least",
    "headroom": "GiB that stay free on every GPU once the pools exist, or 'fits': as much as serving needs",
    "host_memory": "the HiCache host pools fit the host",
}
# What does not fail a check by itself (`--strict` makes it). The HiCache ones are those of sizing/host_hazards.py.
WARNINGS = {
    "tight_headroom": "what stays free may or may not be enough to serve from",
    "estimated_memory": "an expectation does not hold at the lower end of the memory estimate",
    "upper_bound": "not everything that takes memory is known: what comes out is the most there can be",
    "requests_capped": "fewer running requests are granted than the flags ask for",
    "assumed_gpu": "no GPU is named",
    "gpu_count": "the manifest asks for another number of GPUs than the layout has",
    "launch": "a remark of the launch command's reader, such as a flag given twice",
    "resolve": "the engine accepts a flag that does not do what it seems to",
    "draft_not_counted": "HiCache: a draft model's host pool is not counted",
    "scales_lost": "HiCache: FP8 scales have no host copy",
    "no_transfer": "HiCache: the memory layout has no transfers",
    "index_not_backed_up": "HiCache: the index has no host copy",
    "smaller_than_device": "HiCache: a host pool is no larger than the device's",
    "size_is_per_rank": "HiCache: the size counts per GPU, not per host",
    "pools_checked_alone": "HiCache: pools pass one by one and exceed the host together",
    "pod_limit_unseen": "HiCache: the release does not read the container's limit",
    "replicas_unseen": "HiCache: replicas share a host without knowing of each other",
}
KINDS = {**EXPECTATIONS, **WARNINGS}


class Expectations(NamedTuple):
    """What a file expects; None: nothing. Tokens and requests count over the whole deployment.

    `contexts` are the lengths of the requests of min_concurrency, where it is not min_context.
    """

    min_context: int | None = None
    min_concurrency: int | None = None
    min_total_tokens: int | None = None
    max_running_requests: int | None = None
    headroom: float | Literal["fits"] | None = None  # GiB
    host_memory: Literal["fits"] | None = None
    contexts: "Contexts | None" = None

    @property
    def lengths(self) -> "Contexts":
        """How long the requests of min_concurrency are."""
        return self.contexts or one_length(self.min_context or 1)

    @property
    def requests(self) -> int:
        """The most requests at once that are spoken of; 0 where none are."""
        return max(self.min_concurrency or 0, self.max_running_requests or 0)

    @property
    def longest(self) -> int | None:
        """The longest request that is spoken of; None where no length is."""
        named = [self.min_context] if self.contexts is None else [self.min_context, self.contexts.longest]
        return max((length for length in named if length is not None), default=None)


class Change(NamedTuple):
    """Flags to change (None: leave it out), or memory to find, and the expectations that would then fall short.

    `text` is the change as one would type or do it. `estimated`: memory was read for other weights a rank, and is
    estimated for these. `together`: no single flag would do, and all of these at once do.
    """

    flags: Mapping[str, Any]
    text: str
    more_gib: float = 0.0
    then_short: tuple[str, ...] = ()
    estimated: bool = False
    together: bool = False


class Judgement(NamedTuple):
    """One expectation against one start of the engine. `wanted` and `found` are in the expectation's own unit.

    `limit` names what binds; `why` is the arithmetic behind it, in one line. `changes` are those with which it holds.
    `at_most`: `found` is an upper bound, since not everything that takes memory is known. `estimated`: at the ends of
    the memory's estimate something else would come out.
    """

    name: str
    holds: bool
    wanted: int | float | str
    found: int | float | str
    limit: str
    why: str
    changes: tuple[Change, ...] = ()
    at_most: bool = False
    estimated: bool = False


class Remark(NamedTuple):
    """A warning of WARNINGS. `place` is the key of the deployment file that it speaks of."""

    name: str
    why: str
    place: tuple[str, ...]


class Held(NamedTuple):
    """A deployment started and held against what is expected of it.

    `start` is the engine's own answer, None where it refuses the flags; `notes` say how its memory was found.
    """

    start: Any
    judgements: tuple[Judgement, ...]
    remarks: tuple[Remark, ...] = ()
    notes: tuple[Any, ...] = ()
