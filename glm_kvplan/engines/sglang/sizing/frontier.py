"""How many requests fit at once at every context length, what stops the next one, and what another split would hold."""

from glm_kvplan.contexts import one_length
from glm_kvplan.engines.frontier_points import Frontier, FrontierPoint, lengths
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.sizing.served_requests import Served, served
from glm_kvplan.engines.sglang.sizing.server import Server
from glm_kvplan.engines.sglang.sizing.split import most_requests
from glm_kvplan.engines.sglang.sizing.start import Boot
from glm_kvplan.workload import Demand

MOST = 1 << 20  # more requests than any pool holds


def frontier(plan: Plan, answer: Boot, server: Server, prefix_states: int = 0) -> Frontier:
    """The frontier of a plan that starts. `server` is the same, for solving other splits."""
    return Frontier(
        tuple(
            _point(plan, answer, server, context, prefix_states) for context in lengths(plan.deployment.context_length)
        )
    )


def fits(plan: Plan, answer: Boot, demand: Demand) -> Served:
    """What the pools as launched hold of a demand, with the limit named as `sizing.limits` names it."""
    found = served(demand, plan.deployment, answer.solution.sizes)
    if found.limit == "running requests" and answer.limits is not None:
        return found._replace(limit=answer.limits.requests[0].name)
    return found


def _point(plan: Plan, answer: Boot, server: Server, context: int, prefix_states: int) -> FrontierPoint:
    demand = Demand(one_length(context), MOST, prefix_states)
    now = fits(plan, answer, demand)
    workers = plan.deployment.attn_dp_size * plan.deployment.replicas
    advised = most_requests(server, demand) * workers
    return FrontierPoint(context, now.requests, now.limit, advised)
