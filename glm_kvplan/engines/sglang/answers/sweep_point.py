"""One point of a sweep: what `solve` says of a server, without the drawing and the words."""

from typing import Any, NamedTuple

from glm_kvplan.engines.sglang.components import request_bytes
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.sizing.binding_limits import binding
from glm_kvplan.engines.sglang.sizing.headroom import judge
from glm_kvplan.engines.sglang.sizing.served_requests import Demand, check, served
from glm_kvplan.engines.sglang.sizing.server import Server
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.units import GIB


class Point(NamedTuple):
    """A server that starts, and what is said of it up to what it serves (`answers.sweep.columns`)."""

    server: Server
    results: tuple[Any, ...]
    requests_bound_by: str


def size_point(plan: Plan, given: MemoryGiven, prompt_tokens: int | None) -> Point:
    """Start `plan` with this memory. Raises SizingError where the engine refuses, InputError for memory that cannot be
    or of which too little is known.
    """
    server = Server(plan, given)
    if server.failed is not None:
        raise server.refusal()
    deployment, solution, budget, usable = server.deployment, server.solution, server.budget, server.usable
    needs = server.needs(prompt_tokens)
    verdict, _ = judge(usable, needs)
    tokens_bound_by, requests_bound_by = binding(solution)
    costs, requests = solution.costs, solution.running_requests
    results = (
        "ok",
        solution.tokens,
        solution.state_slots,
        requests,
        requests * deployment.attn_dp_size * deployment.replicas,
        tokens_bound_by,
        requests_bound_by,
        costs.cell_bytes,
        costs.slot_bytes + costs.ring_bytes,
        request_bytes(server.ranks[server.stage]),
        usable,
        needs.nbytes,
        usable / GIB,
        verdict,
        budget.certainty,
        deployment.world_size * deployment.replicas,
    )
    return Point(server, results, requests_bound_by)


def serve_point(point: Point, demand: Demand) -> tuple[int, str]:
    """Requests of the demand that the point serves at once, and what stops one more.

    Raises InputError for a demand no pool size can serve.
    """
    deployment = point.server.deployment
    if demand.contexts.longest > deployment.context_length:
        return 0, "context length"
    check(demand, deployment)
    answer = served(demand, deployment, point.server.sizes)
    limit = point.requests_bound_by if answer.limit == "running requests" else answer.limit
    return answer.requests, limit
