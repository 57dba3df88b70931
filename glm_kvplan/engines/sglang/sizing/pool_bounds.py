"""What a load needs of a worker's pools, and what its memory gives."""

from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.sizing.server import Server
from glm_kvplan.engines.sglang.sizing.split import requests_wanted, slots_needed, tokens_of
from glm_kvplan.workload import Demand


def floor_sizes(server: Server, demand: Demand) -> PoolSizes:
    """The least pools of a worker with which the demand is served."""
    requests = requests_wanted(server, demand)
    return PoolSizes(tokens_of(server, demand, requests), slots_needed(server, demand, requests), requests)


def ceiling_tokens(server: Server) -> int:
    """Tokens that the memory of a worker gives beside its state slots, where no flag fixes them."""
    unbound = server.tried(max_total_tokens=None)
    return server.sizes.tokens if unbound is None else unbound.sizes.tokens
