"""One start of the engine, foretold: its memory, what it sizes, what binds, and whether it can then serve."""

from typing import TYPE_CHECKING, NamedTuple

from glm_kvplan.certainty import Certainty
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.sizing.binding_limits import Limits, limits
from glm_kvplan.engines.sglang.sizing.failures import SizingError
from glm_kvplan.engines.sglang.sizing.headroom import Headroom, headroom
from glm_kvplan.engines.sglang.sizing.memory_map import MemoryMap, memory_map
from glm_kvplan.engines.sglang.sizing.remedies import Remedy, remedies, require_memory
from glm_kvplan.engines.sglang.sizing.server import Server
from glm_kvplan.engines.sglang.sizing.solver import Solution
from glm_kvplan.engines.sglang.sizing.transients import Transients
from glm_kvplan.memory.budget import MemoryBudget
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.memory.weights import WeightEstimate
from glm_kvplan.workload import UNKNOWN_HOST, HostGiven

if TYPE_CHECKING:
    from glm_kvplan.engines.sglang.sizing.host_answer import HostAnswer


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
    host: "HostAnswer | None" = None  # HiCache's pools in host memory, where it is on and the engine starts

    @property
    def weight_notes(self) -> tuple[str, ...]:
        """What is to be known of memory that was not read: another boot's figures, estimated weights."""
        return (*self.budget.calibrated, *(() if self.weights is None else self.weights.notes))

    @property
    def solution(self) -> Solution:
        """The sizing of the stage with the least memory left; tokens and requests are the same on every stage."""
        return self.solutions[self.stage]

    @property
    def sizes(self) -> PoolSizes | None:
        return self.solution.sizes

    @property
    def certainty(self) -> Certainty:
        """Of the memory that the sizes follow from."""
        return self.budget.certainty


def boot(
    plan: Plan, given: MemoryGiven, prompt_tokens: int | None = None, host_given: HostGiven = UNKNOWN_HOST
) -> Boot:
    """Start `plan` with this memory. `prompt_tokens` is the longest prompt to serve; None: the longest admitted.

    `host_given` is what is known of the host's memory, for HiCache.
    Raises InputError for memory that is unknown or cannot be, RefusedError for host pools that cannot be built; a
    refusal for want of memory is in the answer.
    """
    server = Server(plan, given)
    require_memory(server)
    budget, stages = server.budget, tuple(rank.stage for rank in server.ranks)
    span = _span(server)
    if server.failed is not None:
        failed, found = server.solutions.index(server.failed), tuple(remedies(server))
        failure = server.refusal()
        return Boot(
            budget, server.weights, stages, server.solutions, failed, None, None, None, None, failure, found, span
        )
    host = _host(server, host_given) if plan.deployment.enable_hierarchical_cache else None
    fullest = server.stage
    staging = 0 if host is None else host.plans[fullest].staging_bytes
    drawn = memory_map(server.ranks[fullest], server.sizes, budget, staging)
    needs = server.needs(prompt_tokens)
    return Boot(
        budget,
        server.weights,
        stages,
        server.solutions,
        fullest,
        limits(server.solution),
        drawn,
        needs,
        headroom(drawn, needs, budget.upper_bound),
        None,
        (),
        span,
        host,
    )


def _host(server: Server, given: HostGiven) -> "HostAnswer | None":
    """HiCache's host pools; nothing of them is loaded where there are none."""
    from glm_kvplan.engines.sglang.sizing.host_answer import host_answer, level

    host = host_answer(server.plan, server.sizes, given)
    return None if host is None else host._replace(balance=None, level=level(server, host))


def _span(server: Server) -> tuple[PoolSizes | None, PoolSizes | None]:
    """What the engine would size with the least and the most memory that the estimate allows."""
    budget = server.budget
    if not budget.error_gib:
        return server.sizes, server.sizes

    def at(available_gib: float) -> PoolSizes | None:
        solution = server.sized_with(available_gib)
        return None if solution.failure is not None else solution.sizes

    return at(budget.available_gib - budget.error_gib), at(budget.available_gib + budget.error_gib)
