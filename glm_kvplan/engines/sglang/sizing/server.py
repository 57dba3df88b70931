"""One server as it starts: its flags resolved, the memory its ranks find, and what the engine then sizes.

The one way from flags to sizes. A what-if (a price, a remedy, a layout, a point of a sweep) is the same server with
other flags: everything is resolved anew and sized again.
"""

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from glm_kvplan.bisection import least
from glm_kvplan.engines.sglang.components import allocated_bytes
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.rank import Rank, ranks
from glm_kvplan.engines.sglang.sizing.failures import SizingError, refusal
from glm_kvplan.engines.sglang.sizing.rank_costs import Costs, stage_costs
from glm_kvplan.engines.sglang.sizing.solver import Solution, size_stages, tightest
from glm_kvplan.engines.sglang.sizing.transients import Transients, graph_bytes, transients
from glm_kvplan.engines.sglang.weight_placement import after_load, placement
from glm_kvplan.errors import KvplanError, RefusedError
from glm_kvplan.kept import kept
from glm_kvplan.memory.budget import DRAFT, MemoryBudget, MemoryPart, memory_budget
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.memory.gpu import Gpu
from glm_kvplan.memory.placement import Placement
from glm_kvplan.memory.weights import WeightEstimate, estimate_weights
from glm_kvplan.model.geometry import Geometry
from glm_kvplan.units import GIB

if TYPE_CHECKING:
    from glm_kvplan.engines.sglang.sizing.host_sizes import HostPlan

_SCALES = "layers/quantization/fp8.py:593-599 at 0.5.23"
MOST_MIB = 1 << 21  # 2 TiB


@dataclass(frozen=True, eq=False)
class Server:
    """A plan and the memory it is started with. Everything else follows, and is worked out when it is asked for.

    `given` was read on the server whose weights lie as `read_on` says (None: on this very one). Where the weights of
    a rank lie otherwise, its readings say nothing, and memory is estimated anew (`memory_moved`).
    """

    plan: Plan
    given: MemoryGiven
    read_on: Placement | None = None
    more_gib: float = 0.0  # left free after the load beyond all that

    @kept
    def deployment(self) -> Deployment:
        return self.plan.deployment

    @kept
    def placement(self) -> Placement:
        plan = self.plan
        return placement(plan.geometry, plan.deployment, plan.gpu)

    @property
    def memory_moved(self) -> bool:
        """Memory was read, and not on these weights: it is estimated here."""
        return self.given.of_weights and self.read_on not in (None, self.placement)

    @kept
    def _memory(self) -> tuple[MemoryBudget, WeightEstimate | None]:
        plan, given = self.plan, self.given
        if self.memory_moved and self.read_on is not None:
            given = given.without_weights(same_load=(self.read_on.gpus == 1) == (self.placement.gpus == 1))
        gpu = None if plan.gpu_assumed and given.pre_gib is not None else plan.gpu
        checkpoint, after = given.checkpoint or plan.weight_format.format, after_load(plan.deployment)
        budget, weights = _memory(plan.geometry, self.placement, gpu, checkpoint, given, after)
        uncounted = _uncounted(plan.deployment, self.placement, budget)
        return (budget._replace(upper_bound=True, uncounted=uncounted) if uncounted else budget), weights

    @kept
    def budget(self) -> MemoryBudget:
        """Free memory before and after the load. Raises InputError where neither readings nor estimates say enough."""
        budget = self._memory[0]
        return budget._replace(available_gib=budget.available_gib + self.more_gib) if self.more_gib else budget

    @property
    def weights(self) -> WeightEstimate | None:
        """The estimate behind the budget; None where the weights were given or read."""
        return self._memory[1]

    @kept
    def ranks(self) -> tuple[Rank, ...]:
        return ranks(self.plan)

    @kept
    def solutions(self) -> tuple[Solution, ...]:
        """What the engine sizes on each pipeline stage; a refusal by memory is in `failure`.

        Raises SizingError for a strategy the engine refuses, InputError as `budget`.
        """
        return self._sized(self.budget.available_gib)

    @kept
    def _costs(self) -> list[Costs]:
        return stage_costs(self.ranks)

    def _sized(self, available_gib: float) -> tuple[Solution, ...]:
        return size_stages(self._costs, self.budget.pre_gib, available_gib)

    @kept
    def failed(self) -> Solution | None:
        """The solution of the first stage that leaves the engine without pools; None where it starts."""
        for solution in self.solutions:
            if solution.failure is not None:
                return solution
        return None

    @property
    def starts(self) -> bool:
        return self.failed is None

    @kept
    def sizes(self) -> PoolSizes:
        """Tokens, state slots and running requests of a rank: the same on every stage."""
        return self.solutions[0].sizes

    @kept
    def solution(self) -> Solution:
        """The sizing that decides: of the stage that fails, else of the one with the least memory left."""
        return self.failed or self.solutions[self.stage]

    def sized_with(self, available_gib: float) -> Solution:
        """What the engine would size with other memory after the load; the stage with the fewest tokens decides."""
        return tightest(self._sized(max(0.0, available_gib)))

    @property
    def missing_gib(self) -> float | None:
        """GiB more left free after the load with which the engine would start, in MiB; None: no memory would do."""
        available_gib = self.budget.available_gib

        def starts(mib: int) -> bool:
            if self.sized_with(available_gib + mib / 1024).failure is not None:
                return False
            return self.with_more(self.more_gib + mib / 1024).lays_hosts_out

        return least(starts, 0, MOST_MIB) / 1024 if starts(MOST_MIB) else None

    def refusal(self) -> SizingError:
        """The error of a server that does not start, with the memory that is missing, all of it."""
        assert self.failed is not None
        missing = self.missing_gib
        return refusal(self.failed, 0 if missing is None else int(missing * GIB))

    @kept
    def host_plans(self) -> "tuple[HostPlan, ...]":
        """HiCache's pools of each stage's rank, whatever the host has; empty where it is off.

        Raises RefusedError for a host layout the engine refuses.
        """
        if not self.deployment.enable_hierarchical_cache:
            return ()
        from glm_kvplan.engines.sglang.sizing.host_sizes import stage_plans

        return stage_plans(self.ranks, self.sizes)

    @property
    def lays_hosts_out(self) -> bool:
        """Whether the engine can lay HiCache's pools out: fewer tokens may be too few pages."""
        try:
            self.host_plans  # noqa: B018
        except RefusedError:
            return False
        return True

    @kept
    def taken(self) -> tuple[int, ...]:
        """Bytes of each stage's pools on the device, charged or not, and of HiCache's buffers there."""
        pools = tuple([allocated_bytes(rank, self.sizes) for rank in self.ranks])
        if not self.host_plans:
            return pools
        return tuple(pool + plan.staging_bytes for pool, plan in zip(pools, self.host_plans, strict=True))

    @property
    def cache_bytes(self) -> int:
        """The same of all GPUs."""
        return sum(self.taken) * self.deployment.tp_size * self.deployment.replicas

    @kept
    def stage(self) -> int:
        """The pipeline stage with the least memory left."""
        return 0 if len(self.ranks) == 1 else self.taken.index(max(self.taken))

    @property
    def unallocated(self) -> int:
        """Bytes the driver calls free there once the pools exist; negative where they do not fit."""
        return int(self.budget.available_gib * GIB) - self.taken[self.stage]

    @kept
    def usable(self) -> int:
        """Bytes serving can take: the free ones, and the draft's dropped embedding and head in torch's cache."""
        return self.unallocated + int(self.budget.returned_gib * GIB)

    def needs(self, prompt_tokens: int | None = None) -> Transients:
        """What serving takes of them while a prompt is prefilled; None: the longest the server admits."""
        return transients(
            self.ranks[self.stage],
            self.sizes,
            free_bytes=self.usable,
            total_bytes=self.budget.total_bytes,
            rocm=self.plan.gpu.vendor == "rocm",
            prompt_tokens=prompt_tokens,
            graphs_off_gib=self._graphs_off_gib,
        )

    @property
    def _graphs_off_gib(self) -> float:
        """What CUDA graphs take beyond their estimate: as read on this very server, else as a calibrating boot says."""
        read = self.given.graphs_gib
        if read is None or self.read_on not in (None, self.placement):
            return self.budget.graphs_off_gib
        return read - graph_bytes(self.deployment, self.sizes.running_requests) / GIB

    def with_flags(self, **changes: object) -> "Server":
        """The same with some flags changed (None takes one back), everything resolved and sized anew.

        Raises InputError and RefusedError as resolving does.
        """
        return Server(self.plan.with_flags(**changes), self.given, self.read_on or self.placement, self.more_gib)

    def with_more(self, more_gib: float) -> "Server":
        """The same with `more_gib` more left free by the weights."""
        return Server(self.plan, self.given, self.read_on, more_gib)

    def tried(self, **changes: object) -> "Server | None":
        """The same, sized; None where the engine refuses the flags, or nothing is known of the memory under them."""
        try:
            other = self.with_flags(**changes)
            other.solutions  # noqa: B018  # what cannot be sized is refused here
        except KvplanError:
            return None
        return other

    @kept
    def typed_fraction(self) -> float:
        """The mem_fraction_static to type for the present one: some kernels take their workspace off what is typed."""
        given, now = self.plan.flags.get("mem_fraction_static"), self.deployment.mem_fraction_static
        if isinstance(given, float | int):
            return given
        try:
            typed = self.plan.with_flags(mem_fraction_static=now).deployment.mem_fraction_static
        except KvplanError:
            return now
        return now if typed == now else round(now * now / typed, 9)


def _uncounted(deployment: Deployment, placed: Placement, budget: MemoryBudget) -> str:
    """What of a draft model of its own is not known, neither read nor given; nothing where all is."""
    if deployment.unknown_draft:
        return "draft model"
    if not placed.draft or placed.mtp_draft or placed.own_draft:
        return ""
    estimated = any(part.name == DRAFT and part.how == "estimated" for part in budget.parts)
    return "weights of the draft model" if estimated else ""


@lru_cache(maxsize=1024)
def _memory(
    geometry: Geometry,
    placed: Placement,
    gpu: Gpu | None,
    checkpoint: str,
    given: MemoryGiven,
    after: MemoryPart | None = None,
) -> tuple[MemoryBudget, WeightEstimate | None]:
    """The readings, and the weights where they had to be estimated."""
    weights = None
    known = given.weights_gib is not None and (given.draft_weights_gib is not None or not placed.draft)
    if given.available_gib is None and not known:
        weights = estimate_weights(geometry, placed, checkpoint, scales_source=_SCALES)
    budget = memory_budget(
        placed,
        gpu=gpu,
        pre_gib=given.pre_gib,
        available_gib=given.available_gib,
        weights_gib=given.weights_gib,
        draft_weights_gib=given.draft_weights_gib,
        weights=weights,
        after=after,
        calibration=given.calibration,
    )
    return budget, weights
