"""A row for every point of a sweep, with the work shared that points have in common."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import Any, NamedTuple

from glm_kvplan.answers.sweep.axes import Axis, check_axes, count_points, flag_value, points
from glm_kvplan.answers.sweep.bounded_cache import Memo
from glm_kvplan.answers.sweep.columns import RESULTS, Column
from glm_kvplan.answers.sweep.pool_law import PoolLaw
from glm_kvplan.answers.sweep.sized_point import ALONE, Sized, shape, sized
from glm_kvplan.contexts import Contexts, contexts
from glm_kvplan.engines.engine import Given
from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.profile import load_profile
from glm_kvplan.engines.sglang.sizing.served_requests import Demand, check, served
from glm_kvplan.engines.sglang.sizing.server import Server
from glm_kvplan.errors import KvplanError, RefusedError
from glm_kvplan.memory.budget import MemoryBudget
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.memory.gpu import find_gpu
from glm_kvplan.units import LARGEST_COUNT
from glm_kvplan.workload import DEFAULT_CONTEXT

_ROLES = ("start", "alone", "memory", "workload")

Row = tuple[Any, ...]
_Key = tuple[Any, ...]


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


class Start(NamedTuple):
    """A resolved plan without the flags that stand alone; `site` is the point's engine and GPU."""

    plan: Plan
    site: _Key
    weights: _Key  # what its weights depend on beside the layout


class Sweep:
    """The points of `axes` over one deployment. Iterating gives a row a point; `columns` names their values.

    A point that the engine refuses, or whose flags cannot be meant, is a row with its reason. Memory stays constant:
    nothing is kept but bounded caches. A point gets the numbers that `sizing.boot.boot` gives its plan.
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
        # aiter's workspace ties the memory fraction to the context length
        tied = given.flags.get("attention_backend") == "aiter" or any(a.name == "attention_backend" for a in axes)
        alone: frozenset[str] = frozenset() if tied else ALONE
        roles = [axis.role if axis.role in _ROLES else "alone" if axis.name in alone else "start" for axis in self.axes]
        places = {role: [at for at, found in enumerate(roles) if found == role] for role in _ROLES}
        self._names = {role: tuple(self.axes[at].name for at in places[role]) for role in _ROLES}
        self._start_of, self._alone_of, self._memory_of, self._workload_of = (_picker(places[role]) for role in _ROLES)
        self._prompt_at = next((at for at, axis in enumerate(self.axes) if axis.name == "prompt"), None)
        self._blank = (None,) * (len(RESULTS) - 2)
        self._starts: Memo[Start | Refused] = Memo()
        self._singles: Memo[object] = Memo()
        self._budgets: Memo[MemoryBudget | Refused] = Memo()
        self._laws: Memo[PoolLaw] = Memo()
        self._sizes: Memo[Sized | Refused] = Memo()
        self._demands: Memo[Demand] = Memo()

    def __len__(self) -> int:
        return count_points(self.axes)

    def __iter__(self) -> Iterator[Row]:
        return map(self.row, points(self.axes))

    def row(self, point: tuple[object, ...]) -> Row:
        """The row of one point: its values on the axes, then RESULTS."""
        prompt: Any = self.workload.prompt if self._prompt_at is None else point[self._prompt_at]
        start, alone, memory = self._start_of(point), self._alone_of(point), self._memory_of(point)
        found = self._sizes((start, alone, memory, prompt), self._size, start, alone, memory, prompt)
        if isinstance(found, Refused):
            return (*point, "refused", *self._blank, found.reason)
        deployment, workload = found.deployment, self._workload_of(point)
        demand = self._demands((workload, deployment.context_length), self._demand, workload, deployment)
        if demand.contexts.longest > deployment.context_length:
            return (*point, *found.results, 0, "context length", None)
        try:
            check(demand, deployment)
        except KvplanError as error:
            return (*point, "refused", *self._blank, str(error))
        answer = served(demand, deployment, found.sizes)
        limit = found.requests_bound_by if answer.limit == "running requests" else answer.limit
        return (*point, *found.results, answer.requests, limit, None)

    def _size(self, key: _Key, alone: _Key, memory: _Key, prompt: int | None) -> Sized | Refused:
        start = self._starts(key, self._start, key)
        if isinstance(start, Refused):
            return start
        deployment = self._deployment(start, alone)
        if isinstance(deployment, Refused):
            return deployment
        keyed = (start.weights, shape(deployment), memory)
        budget = self._budgets(keyed, self._budget, start.plan, deployment, memory)
        if isinstance(budget, Refused):
            return budget
        try:
            return sized(start.plan, deployment, budget, prompt, self._laws)
        except KvplanError as error:
            return _refused(error)

    def _start(self, key: _Key) -> Start | Refused:
        values = dict(zip(self._names["start"], key, strict=True))
        given = self.given
        if "engine" in values:
            given = replace(given, profile=load_profile(values["engine"]))
        if "gpu" in values:
            given = replace(given, gpu=find_gpu(values["gpu"]), gpu_assumed=False)
        site = (values.pop("engine", None), values.pop("gpu", None))
        flags = {name: flag_value(name, value) for name, value in values.items()}
        try:
            plan = given.plan(**flags, **dict.fromkeys(self._names["alone"]))
        except KvplanError as error:
            return _refused(error)
        weights = (site[1], plan.weight_format.format)
        return Start(plan, site, weights)

    def _deployment(self, start: Start, alone: _Key) -> Deployment | Refused:
        """The start's deployment with the flags that stand alone; one that was taken back is as the start has it."""
        changes: dict[str, Any] = {}
        for name, value in zip(self._names["alone"], alone, strict=True):
            if value is not None:
                single = self._singles((name, value, start.site), _single, start.plan, name, value)
                if isinstance(single, Refused):
                    return single
                changes[name] = single
        return start.plan.deployment.changed(**changes) if changes else start.plan.deployment

    def _budget(self, plan: Plan, deployment: Deployment, memory: _Key) -> MemoryBudget | Refused:
        known = self.memory._replace(**dict(zip(self._names["memory"], memory, strict=True)))
        try:
            return Server(plan, known).budget
        except KvplanError as error:
            return _refused(error)

    def _demand(self, workload: _Key, deployment: Deployment) -> Demand:
        asked = dict(zip(self._names["workload"], workload, strict=True))
        length = asked.get("context")
        lengths = self.workload.contexts if length is None else contexts([(length, 1)])
        if lengths is None:
            lengths = contexts([(min(DEFAULT_CONTEXT, deployment.context_length), 1)])
        concurrency = asked.get("concurrency", self.workload.concurrency)
        checkpoints = asked.get("checkpoints", self.workload.checkpoints)
        return Demand(lengths, LARGEST_COUNT if concurrency is None else concurrency, checkpoints or 0)


def _single(plan: Plan, name: str, value: object) -> object:
    """What becomes of a flag that stands alone: the same on every start of this engine and GPU, so any will do."""
    try:
        return getattr(plan.with_flags(**{name: value}).deployment, name)
    except KvplanError as error:
        return _refused(error)


def _refused(error: KvplanError) -> Refused:
    return Refused(error.reason if isinstance(error, RefusedError) else str(error))


def _picker(places: list[int]) -> Callable[[tuple[object, ...]], _Key]:
    """A function that takes these places out of a point, as a tuple."""
    if len(places) == 1:
        (only,) = places
        return lambda point: (point[only],)
    return itemgetter(*places) if places else lambda point: ()
