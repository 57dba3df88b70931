"""How many requests fit at once at every context length, what stops the next one, and what another split would hold."""

from typing import NamedTuple

from glm_kvplan.contexts import contexts
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.sizing.served_requests import Demand, Served, served
from glm_kvplan.engines.sglang.sizing.server import Server
from glm_kvplan.engines.sglang.sizing.split import most_requests
from glm_kvplan.engines.sglang.sizing.start import Boot

SHORTEST = 1024
STEPS_PER_DOUBLING = 8
MOST = 1 << 20  # more requests than any pool holds


class FrontierPoint(NamedTuple):
    """One context length, with requests over the whole deployment (all DP workers and replicas)."""

    context: int
    requests: int  # of this length that the pools as launched hold at once
    limit: str  # what stops the next one: a name of sizing.limits or workload.served
    advised: int  # what the best split of the same memory for this length holds


class Frontier(NamedTuple):
    """Points by rising context, up to the longest the server admits."""

    points: tuple[FrontierPoint, ...]

    @property
    def marks(self) -> tuple[FrontierPoint, ...]:
        """The points worth a row in a table: lengths that are powers of two, and the longest."""
        last = self.points[-1]
        return tuple(point for point in self.points if point is last or point.context & (point.context - 1) == 0)


def frontier(plan: Plan, answer: Boot, server: Server, checkpoints: int = 0) -> Frontier:
    """The frontier of a plan that starts. `server` is the same, for solving other splits."""
    return Frontier(
        tuple(_point(plan, answer, server, context, checkpoints) for context in lengths(plan.deployment.context_length))
    )


def lengths(longest: int) -> tuple[int, ...]:
    """Context lengths from 1K (from 1 where the longest is no more) in equal ratios, every power of two among them."""
    found: list[int] = []
    power = SHORTEST if longest > SHORTEST else 1
    while power < longest:
        found += [int(power * 2 ** (step / STEPS_PER_DOUBLING)) for step in range(STEPS_PER_DOUBLING)]
        power *= 2
    return (*dict.fromkeys(length for length in found if length < longest), longest)


def fits(plan: Plan, answer: Boot, demand: Demand) -> Served:
    """What the pools as launched hold of a demand, with the limit named as `sizing.limits` names it."""
    found = served(demand, plan.deployment, answer.solution.sizes)
    if found.limit == "running requests" and answer.limits is not None:
        return found._replace(limit=answer.limits.requests[0].name)
    return found


def _point(plan: Plan, answer: Boot, server: Server, context: int, checkpoints: int) -> FrontierPoint:
    demand = Demand(contexts([(context, 1)]), MOST, checkpoints)
    now = fits(plan, answer, demand)
    workers = plan.deployment.attn_dp_size * plan.deployment.replicas
    advised = most_requests(server, demand) * workers
    return FrontierPoint(context, now.requests, now.limit, advised)
