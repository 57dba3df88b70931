"""What a server is to serve at once, and how much of it given pools serve."""

from operator import itemgetter
from typing import NamedTuple

from glm_kvplan.bisection import largest_near
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.errors import InputError
from glm_kvplan.units import LARGEST_COUNT
from glm_kvplan.workload import Demand


class Served(NamedTuple):
    """How much of a demand some pools serve."""

    requests: int  # over all DP workers and replicas, at most the concurrency asked for
    per_worker: int
    # what stops one more on a worker: "concurrency", "running requests", "state slots", "tokens" or "context length"
    limit: str


def slots_of_request(demand: Demand, deployment: Deployment) -> int:
    """State slots one running request of the demand takes: the engine's own number and its prefix states."""
    return deployment.slots_per_request + demand.prefix_states


def served(demand: Demand, deployment: Deployment, sizes: PoolSizes) -> Served:
    """How many requests of the demand the pools of every worker hold at once.

    A worker serves n requests at once when n is at most its running requests, n times the slots of a request (with
    its prefix states) are at most its state slots, and n contexts of the mix (see `Contexts.tokens`) fill at most its
    tokens, which must also exceed the longest context; none where the server refuses the longest. The demand's
    concurrency is spread evenly over the workers (attention DP times replicas); the busiest one decides. Scheduling
    order and cache hits are not part of it: this is what can be resident, with every request at its full length.
    """
    if demand.contexts.longest > deployment.context_length:
        return Served(0, 0, "context length")
    workers = deployment.attn_dp_size * deployment.replicas
    wanted = -(-demand.concurrency // workers)
    page, reserve = deployment.page_size, deployment.decode_reserve
    bounds = (
        ("concurrency", wanted),
        ("running requests", sizes.running_requests),
        ("state slots", sizes.state_slots // slots_of_request(demand, deployment)),
    )
    limit, most = min(bounds, key=itemgetter(1))
    most = max(0, most)
    contexts = demand.contexts
    fits = 0 if sizes.tokens <= contexts.longest else most
    if fits and len(contexts.lengths) == 1:
        fits = min(most, sizes.tokens // contexts.tokens(1, page, reserve))
    elif fits and contexts.tokens(most, page, reserve) > sizes.tokens:
        likely = contexts.likely_requests(sizes.tokens)
        fits = largest_near(
            likely, lambda requests: contexts.tokens(requests, page, reserve) <= sizes.tokens, 0, most - 1
        )
    if fits < most:
        limit = "tokens"
    return Served(min(demand.concurrency, fits * workers), fits, limit)


def check_demand(demand: Demand, deployment: Deployment) -> None:
    """Refuse a demand that no pool size can serve. Raises InputError."""
    if not 0 < demand.concurrency <= LARGEST_COUNT:
        raise InputError(f"concurrency {demand.concurrency} must lie between 1 and 2**48")
    if not 0 <= demand.prefix_states <= LARGEST_COUNT:
        raise InputError(f"prefix states {demand.prefix_states} must lie between 0 and 2**48")
    if demand.prefix_states and deployment.disable_radix_cache:
        raise InputError("prefix states need the radix cache, which is off; leave disable_radix_cache out")
