"""A row for every point of a sweep: its flags resolved and sized as those of any server, its workload served."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

from glm_kvplan.answers.sweep.axes import Axis, check_axes, count_points, flag_value, points
from glm_kvplan.answers.sweep.columns import RESULTS, Column
from glm_kvplan.contexts import Contexts, contexts
from glm_kvplan.engines.engine import Given
from glm_kvplan.engines.sglang.answers.sweep_point import Point, serve_point, size_point
from glm_kvplan.engines.sglang.profile import load_profile
from glm_kvplan.engines.sglang.sizing.served_requests import Demand
from glm_kvplan.errors import KvplanError, RefusedError
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.memory.gpu import find_gpu
from glm_kvplan.units import LARGEST_COUNT
from glm_kvplan.workload import DEFAULT_CONTEXT

MOST_KEPT = 1024
_ROLES = ("site", "flag", "memory", "workload")

Row = tuple[Any, ...]
_Key = tuple[Any, ...]
_T = TypeVar("_T")


class Workload(NamedTuple):
    """What the points are to serve. Contexts None: 128K, or the longest the server takes; concurrency None: all it can.

    `prompt` is the longest prompt that the headroom is judged by (None: the longest admitted).
    """

    contexts: Contexts | None = None
    concurrency: int | None = None
    checkpoints: int = 0
    prompt: int | None = None


class Refused(NamedTuple):
    """Why nothing comes of a point."""

    reason: str


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
        self.columns: tuple[Column, ...] = (*(axis.column for axis in axes), *RESULTS)
        roles = ["prompt" if axis.name == "prompt" else axis.role for axis in self.axes]
        places = {role: [at for at, found in enumerate(roles) if found == role] for role in _ROLES}
        self._names = {role: tuple(self.axes[at].name for at in places[role]) for role in _ROLES}
        self._site_of, self._flags_of, self._memory_of, self._workload_of = (_picker(places[role]) for role in _ROLES)
        self._prompt_at = roles.index("prompt") if "prompt" in roles else None
        self._blank = (None,) * (len(RESULTS) - 2)
        self._sites: dict[Hashable, Given] = {}
        self._plans: dict[Hashable, Any] = {}
        self._points: dict[Hashable, Point | Refused] = {}
        self._demands: dict[Hashable, Demand] = {}

    def __len__(self) -> int:
        return count_points(self.axes)

    def __iter__(self) -> Iterator[Row]:
        return map(self.row, points(self.axes))

    def row(self, point: tuple[object, ...]) -> Row:
        """The row of one point: its values on the axes, then RESULTS."""
        prompt: Any = self.workload.prompt if self._prompt_at is None else point[self._prompt_at]
        place = (self._site_of(point), self._flags_of(point)), self._memory_of(point), prompt
        found = _kept(self._points, place, lambda: self._size(*place))
        if isinstance(found, Refused):
            return (*point, "refused", *self._blank, found.reason)
        asked, context_length = self._workload_of(point), found.server.deployment.context_length
        demand = _kept(self._demands, (asked, context_length), lambda: self._demand(asked, context_length))
        try:
            return (*point, *found.results, *serve_point(found, demand), None)
        except KvplanError as error:
            return (*point, "refused", *self._blank, str(error))

    def _size(self, place: _Key, memory: _Key, prompt: int | None) -> Point | Refused:
        plan = _kept(self._plans, place, lambda: self._plan(*place))
        if isinstance(plan, Refused):
            return plan
        known = self.memory
        if memory:
            known = known._replace(**dict(zip(self._names["memory"], memory, strict=True)))
        try:
            return size_point(plan, known, prompt)
        except KvplanError as error:
            return _refused(error)

    def _plan(self, site: _Key, values: _Key) -> Any:
        given = _kept(self._sites, site, lambda: self._site(site))
        names = self._names["flag"]
        flags = {name: flag_value(name, value) for name, value in zip(names, values, strict=True)}
        try:
            return given.plan(**flags)
        except KvplanError as error:
            return _refused(error)

    def _site(self, site: _Key) -> Given:
        given = self.given
        for name, value in zip(self._names["site"], site, strict=True):
            if name == "engine":
                given = replace(given, profile=load_profile(value))
            else:
                given = replace(given, gpu=find_gpu(value), gpu_assumed=False)
        return given

    def _demand(self, workload: _Key, context_length: int) -> Demand:
        asked = dict(zip(self._names["workload"], workload, strict=True))
        length = asked.get("context")
        lengths = self.workload.contexts if length is None else contexts([(length, 1)])
        if lengths is None:
            lengths = contexts([(min(DEFAULT_CONTEXT, context_length), 1)])
        concurrency = asked.get("concurrency", self.workload.concurrency)
        checkpoints = asked.get("checkpoints", self.workload.checkpoints)
        return Demand(lengths, LARGEST_COUNT if concurrency is None else concurrency, checkpoints or 0)


def _kept(known: dict[Hashable, _T], key: Hashable, make: Callable[[], _T]) -> _T:
    """The answer of `key`: the one kept, or a new one. A full cache starts over, which costs a walk little."""
    if key in known:
        return known[key]
    answer = make()
    if len(known) >= MOST_KEPT:
        known.clear()
    known[key] = answer
    return answer


def _refused(error: KvplanError) -> Refused:
    return Refused(error.reason if isinstance(error, RefusedError) else str(error))


def _picker(places: list[int]) -> Callable[[tuple[object, ...]], _Key]:
    """A function that takes these places out of a point, as a tuple."""
    if len(places) == 1:
        (only,) = places
        return lambda point: (point[only],)
    return itemgetter(*places) if places else lambda point: ()
