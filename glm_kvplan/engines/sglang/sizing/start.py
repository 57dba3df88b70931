"""One start of the engine, foretold: its memory, what it sizes, what binds, and whether it can then serve."""

from typing import NamedTuple

from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.rank import ranks
from glm_kvplan.engines.sglang.sizing.binding_limits import Limits, limits
from glm_kvplan.engines.sglang.sizing.failures import SizingError, refusal
from glm_kvplan.engines.sglang.sizing.headroom import Headroom, headroom
from glm_kvplan.engines.sglang.sizing.host_answer import UNKNOWN_HOST, HostAnswer, HostGiven, host_answer, level
from glm_kvplan.engines.sglang.sizing.memory_map import MemoryMap, memory_map
from glm_kvplan.engines.sglang.sizing.remedies import Remedy, remedies
from glm_kvplan.engines.sglang.sizing.solver import Solution, attempt, attempt_stages
from glm_kvplan.engines.sglang.sizing.transients import Transients, transients
from glm_kvplan.engines.sglang.sizing.what_if import Memory, Setup
from glm_kvplan.engines.sglang.weight_placement import placement
from glm_kvplan.memory.budget import MemoryBudget, memory_budget
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.memory.weights import WeightEstimate, estimate_weights


class Boot(NamedTuple):
    """What comes of a start. Where the engine refuses, `failure` says why, `remedies` what would help, and `map`,
    `needs` and `headroom` are None.
    """

    budget: MemoryBudget
    weights: WeightEstimate | None
    stages: tuple[range, ...]
    solutions: tuple[Solution, ...]  # one a pipeline stage
    stage: int  # the stage with the least memory left
    limits: Limits | None
    map: MemoryMap | None
    needs: Transients | None
    headroom: Headroom | None
    failure: SizingError | None
    remedies: tuple[Remedy, ...]
    span: tuple[PoolSizes | None, PoolSizes | None]  # sizes at the ends of the memory's error; None: refused there
    host: HostAnswer | None = None  # HiCache's pools in host memory, where it is on and the engine starts

    @property
    def weight_notes(self) -> tuple[str, ...]:
        """What is to be known of estimated weights."""
        return () if self.weights is None else self.weights.notes

    @property
    def solution(self) -> Solution:
        """The sizing of the stage with the least memory left; tokens and requests are the same on every stage."""
        return self.solutions[self.stage]


def memory_of(plan: Plan, given: MemoryGiven, deployment: Deployment) -> tuple[MemoryBudget, WeightEstimate | None]:
    """The memory of `deployment` (`plan`'s own or a changed one) under what the user knows.

    Raises InputError where neither the user nor an estimate says enough.
    """
    weights = None
    placed = placement(plan.geometry, deployment, plan.gpu)
    known = given.weights_gib is not None and (given.draft_weights_gib is not None or not deployment.speculative)
    if given.available_gib is None and not known:
        weights = estimate_weights(plan.geometry, placed, given.checkpoint or plan.weight_format.format)
    budget = memory_budget(
        placed,
        gpu=None if plan.gpu_assumed and given.pre_gib is not None else plan.gpu,
        pre_gib=given.pre_gib,
        available_gib=given.available_gib,
        weights_gib=given.weights_gib,
        draft_weights_gib=given.draft_weights_gib,
        weights=weights,
    )
    return budget, weights


def setup_of(plan: Plan, given: MemoryGiven) -> Setup:
    """The plan as a setup one may ask "what if" about. The memory readings of another layout are estimated anew."""

    def memory(deployment: Deployment) -> Memory:
        budget, _ = memory_of(plan, given, deployment)
        return Memory(budget.pre_gib, budget.available_gib)

    def resolve_with(**changes: object) -> Deployment:
        return plan.with_flags(**changes).deployment

    return Setup(plan.geometry, plan.profile, plan.deployment, memory, resolve_with)


def boot(
    plan: Plan, given: MemoryGiven, prompt_tokens: int | None = None, host_given: HostGiven = UNKNOWN_HOST
) -> Boot:
    """Start `plan` with this memory. `prompt_tokens` is the longest prompt to serve; None: the longest admitted.

    `host_given` is what is known of the host's memory, for HiCache.
    Raises InputError for memory that is unknown or cannot be, RefusedError for host pools that cannot be built; a
    refusal for want of memory is in the answer.
    """
    budget, weights = memory_of(plan, given, plan.deployment)
    stages = ranks(plan)
    layers = tuple(rank.stage for rank in stages)
    solutions = attempt_stages(plan, budget.pre_gib, budget.available_gib)
    span = _span(plan, budget, solutions[0].sizes)
    failed = [number for number, solution in enumerate(solutions) if solution.failure is not None]
    if failed:
        found = tuple(remedies(setup_of(plan, given)))
        failure = refusal(solutions[failed[0]])
        return Boot(budget, weights, layers, solutions, failed[0], None, None, None, None, failure, found, span)
    host = host_answer(plan, solutions[0].sizes, host_given)
    if host is not None:
        host = host._replace(balance=None, level=level(plan, host, budget.pre_gib, budget.available_gib))
    staging = [0] * len(layers) if host is None else [pools.staging_bytes for pools in host.plans]
    maps = [
        memory_map(rank, solution.sizes, budget, staged)
        for rank, solution, staged in zip(stages, solutions, staging, strict=True)
    ]
    fullest = min(range(len(maps)), key=lambda number: maps[number].free)
    solution, drawn = solutions[fullest], maps[fullest]
    needs = transients(
        stages[fullest],
        solution.sizes,
        free_bytes=drawn.usable,
        total_bytes=budget.total_bytes,
        rocm=plan.gpu.vendor == "rocm",
        prompt_tokens=prompt_tokens,
    )
    verdict = headroom(drawn, needs)
    bound = limits(solution)
    return Boot(budget, weights, layers, solutions, fullest, bound, drawn, needs, verdict, None, (), span, host)


def _span(plan: Plan, budget: MemoryBudget, sizes: PoolSizes) -> tuple[PoolSizes | None, PoolSizes | None]:
    """What the engine would size with the least and the most memory that the estimate allows."""
    if not budget.error_gib:
        return sizes, sizes

    def at(available_gib: float) -> PoolSizes | None:
        solution = attempt(plan, budget.pre_gib, max(0.0, available_gib))
        return None if solution.failure is not None else solution.sizes

    return at(budget.available_gib - budget.error_gib), at(budget.available_gib + budget.error_gib)
