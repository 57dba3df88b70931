"""A row for every point of a sweep: its flags resolved and sized as those of any server, its workload served."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from operator import itemgetter
from typing import Any, NamedTuple

from glm_kvplan.answers.sweep.axes import ENGINE, Axis, check_axes, count_points, flag_value, points, release_named
from glm_kvplan.contexts import Contexts, one_length
from glm_kvplan.engines.protocol import Engine, Given, Release
from glm_kvplan.engines.sweep_columns import REASON, STATUS, Column, Point, result_columns, sweeping
from glm_kvplan.engines.twin_flags import check_twins, translated
from glm_kvplan.errors import InputError, KvplanError, RefusedError
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.memory.gpu import find_gpu
from glm_kvplan.units import LARGEST_COUNT
from glm_kvplan.workload import DEFAULT_CONTEXT, Demand

MOST_KEPT = 1024
TOGETHER = 32  # points that are resolved, then sized: the code of either step stays in the processor's cache so long
_ROLES = ("site", "flag", "memory", "workload")

Row = tuple[Any, ...]
_Key = tuple[Any, ...]


class Workload(NamedTuple):
    """What the points are to serve. Contexts None: 128K, or the longest the server takes; concurrency None: all it can.

    `prompt` is the longest prompt that the headroom is judged by (None: the longest admitted).
    """

    contexts: Contexts | None = None
    concurrency: int | None = None
    prefix_states: int = 0
    prompt: int | None = None


class Refused(NamedTuple):
    """Why nothing comes of a point."""

    reason: str


class _Site(NamedTuple):
    """What was given, on one GPU and release; a release of another engine is `other`, and the flags are said in its."""

    given: Given
    other: Release | None


class Sweep:
    """The points of `axes` over one deployment. Iterating gives a row a point; `columns` names their values.

    A point that the engine refuses, or whose flags cannot be meant, is a row with its reason. Memory stays constant:
    nothing is kept but bounded caches. A point gets the numbers that `solve` gives its flags.
    """

    def __init__(
        self,
        given: Given,
        axes: Sequence[Axis],
        memory: MemoryGiven | None = None,
        workload: Workload | None = None,
    ) -> None:
        check_axes(axes)
        self.given, self.axes = given, tuple(axes)
        self.memory, self.workload = memory or MemoryGiven(), workload or Workload()
        self.engines = self._engines()
        results = result_columns(self.engines)
        self.columns: tuple[Column, ...] = (*(axis.column for axis in axes), STATUS, *results, REASON)
        roles = ["prompt" if axis.name == "prompt" else axis.role for axis in self.axes]
        places = {role: [at for at, found in enumerate(roles) if found == role] for role in _ROLES}
        self._names = {role: tuple(self.axes[at].name for at in places[role]) for role in _ROLES}
        self._turned = tuple(self.axes[at].flag for at in places["flag"])
        self._site_of, self._flags_of, self._memory_of, self._workload_of = (_picker(places[role]) for role in _ROLES)
        self._prompt_at = roles.index("prompt") if "prompt" in roles else None
        self._said = len(results)  # of an engine's values: what several engines say alike comes first
        self._blank = (None,) * self._said
        # What several points share is kept; a plan that one point alone asks for only until it is sized.
        kept = lru_cache(maxsize=MOST_KEPT)
        self._sited, self._demanded = kept(self._site), kept(self._demand)
        shared = len(places["site"]) + len(places["flag"]) < len(self.axes)
        self._planned = kept(self._plan) if shared else lru_cache(maxsize=TOGETHER)(self._plan)
        self._sized = kept(self._size) if self._names["workload"] else self._size
        self._check()

    def _engines(self) -> tuple[Engine, ...]:
        """The engines of the points, each once."""
        own: Engine = self.given.profile.engine
        values = (str(value) for axis in self.axes if axis.name == ENGINE for value in axis)
        return tuple(dict.fromkeys(release_named(value, own).engine for value in values)) or (own,)

    def _check(self) -> None:
        """Refuse what no point could do. Raises InputError."""
        own: Engine = self.given.profile.engine
        turned = self._names["flag"]
        for engine in self.engines:
            check_twins(own, engine, (*self.given.flags, *self.given.environment, *turned))
            if engine is not own and not turned:
                translated(self.given, engine.load(engine.assumed))
        read = self.memory.available_gib is not None or "available_gib" in self._names["memory"]
        if len(self.engines) > 1 and (read or self.memory.calibration is not None):
            raise InputError(
                "--available-gib and --calibrate are readings of one engine: leave them out in a sweep over several"
            )

    def __len__(self) -> int:
        return count_points(self.axes)

    def __iter__(self) -> Iterator[Row]:
        found = points(self.axes)
        while together := tuple(islice(found, TOGETHER)):
            for point in together:
                self._planned(self._site_of(point), self._flags_of(point))
            yield from [self.row(point) for point in together]

    def row(self, point: tuple[object, ...]) -> Row:
        """The row of one point: its values on the axes, its status, what is said of it, and why it is refused."""
        prompt: Any = self.workload.prompt if self._prompt_at is None else point[self._prompt_at]
        place = (self._site_of(point), self._flags_of(point)), self._memory_of(point), prompt
        found = self._sized(*place)
        if isinstance(found, Refused):
            return (*point, "refused", *self._blank, found.reason)
        asked, context_length = self._workload_of(point), found.context_length
        demand = self._demanded(asked, context_length)
        try:
            return (*point, "ok", *found.values(demand)[: self._said], None)
        except KvplanError as error:
            return (*point, "refused", *self._blank, str(error))

    def _size(self, place: _Key, memory: _Key, prompt: int | None) -> Point | Refused:
        plan = self._planned(*place)
        if isinstance(plan, Refused):
            return plan
        known = self.memory
        if memory:
            known = known._replace(**dict(zip(self._names["memory"], memory, strict=True)))
        try:
            return sweeping(plan.profile.engine).size_point(plan, known, prompt)
        except KvplanError as error:
            return _refused(error)

    def _plan(self, site: _Key, values: _Key) -> Any:
        names = zip(self._names["flag"], self._turned, values, strict=True)
        flags = {name: flag_value(flag, value) for name, flag, value in names}
        given, other = self._sited(site)
        try:
            return given.plan(**flags) if other is None else translated(given.with_changes(flags), other).plan()
        except KvplanError as error:
            return _refused(error)

    def _site(self, site: _Key) -> _Site:
        given, other = self.given, None
        for name, value in zip(self._names["site"], site, strict=True):
            if name != ENGINE:
                given = replace(given, gpu=find_gpu(value), gpu_assumed=False)
                continue
            release = release_named(value, given.profile.engine)
            if release.engine is given.profile.engine:
                given = replace(given, profile=release)
            else:
                other = release
        return _Site(given, other)

    def _demand(self, workload: _Key, context_length: int) -> Demand:
        asked = dict(zip(self._names["workload"], workload, strict=True))
        length = asked.get("context")
        lengths = self.workload.contexts if length is None else one_length(length)
        if lengths is None:
            lengths = one_length(min(DEFAULT_CONTEXT, context_length))
        concurrency = asked.get("concurrency", self.workload.concurrency)
        prefix_states = asked.get("prefix_states", self.workload.prefix_states)
        return Demand(lengths, LARGEST_COUNT if concurrency is None else concurrency, prefix_states or 0)


def _refused(error: KvplanError) -> Refused:
    return Refused(error.reason if isinstance(error, RefusedError) else str(error))


def _picker(places: list[int]) -> Callable[[tuple[object, ...]], _Key]:
    """A function that takes these places out of a point, as a tuple."""
    if len(places) == 1:
        (only,) = places
        return lambda point: (point[only],)
    return itemgetter(*places) if places else lambda point: ()
