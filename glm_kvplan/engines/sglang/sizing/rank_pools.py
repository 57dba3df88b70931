"""The pools of one rank of a plan: the sizes asked for, the sizes the engine grants, and the tensors of both."""

from typing import NamedTuple

from glm_kvplan.engines.sglang.components import tensor_specs
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.rank import Rank, ranks
from glm_kvplan.engines.sglang.sizing.attribution import Attribution, attribution
from glm_kvplan.engines.sglang.sizing.rank_costs import check
from glm_kvplan.engines.sglang.sizing.solver import granted_requests
from glm_kvplan.engines.sglang.sizing.workload_cost import Workload, pool_sizes, workload_sizes
from glm_kvplan.errors import InputError, RefusedError
from glm_kvplan.tensor import TensorSpec, device_bytes
from glm_kvplan.workload import Demand


class RankPools(NamedTuple):
    """A rank's pools: what the flags and the workload ask for, and what the engine grants."""

    plan: Plan
    pp_rank: int
    rank: Rank
    asked: PoolSizes
    sizes: PoolSizes

    @property
    def stage(self) -> range:
        return self.rank.stage

    def build(self, sizes: PoolSizes) -> tuple[TensorSpec, ...]:
        """The tensors of this rank at other sizes."""
        return tensor_specs(self.rank, sizes)

    @property
    def tensors(self) -> tuple[TensorSpec, ...]:
        return self.build(self.sizes)

    @property
    def attribution(self) -> Attribution:
        return attribution(self.rank, self.sizes)


def pools_of(plan: Plan, workload: Workload | Demand, pp_rank: int | None = None) -> RankPools:
    """The pools of a rank of pipeline stage `pp_rank`, or (None) of the stage whose tensors take most.

    Sizes that flags fix are taken from them, the others from the workload. Raises InputError, RefusedError.
    """
    deployment = plan.deployment
    check(deployment)
    stages = ranks(plan)
    if pp_rank is not None and not 0 <= pp_rank < len(stages):
        raise InputError(f"--pp-rank {pp_rank} must lie between 0 and {len(stages) - 1}")
    asked = pool_sizes(plan, workload_sizes(deployment, workload))
    sizes = granted(deployment, asked)
    found = [RankPools(plan, number, rank, asked, sizes) for number, rank in enumerate(stages)]
    return max(found, key=lambda pools: device_bytes(pools.tensors)) if pp_rank is None else found[pp_rank]


def granted(deployment: Deployment, sizes: PoolSizes) -> PoolSizes:
    """The sizes with the engine's own cap on running requests. Raises RefusedError where nothing is left."""
    requests = granted_requests(sizes.running_requests, sizes.tokens, sizes.state_slots, deployment.slots_per_request)
    if requests <= 0:
        raise RefusedError(
            f"pools of {sizes.tokens} tokens and {sizes.state_slots} state slots ({deployment.slots_per_request} a "
            "request) serve no request; raise --max-total-tokens, --max-mamba-cache-size or --max-running-requests",
            "mem_cache/kv_cache_configurator.py:3154-3172 at 0.5.23",
        )
    return sizes._replace(running_requests=requests)
