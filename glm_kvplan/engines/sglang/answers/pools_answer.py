"""Every tensor the engine allocates on one rank: the answer of `kvplan pools`."""

from typing import NamedTuple

from glm_kvplan.engines.answer_head import Head
from glm_kvplan.engines.sglang.answers.estimate_answer import DifferenceShown
from glm_kvplan.engines.sglang.answers.plan_head import head_of
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.sizing.rank_pools import RankPools, pools_of
from glm_kvplan.engines.tensors_shown import TensorShown, show_tensor
from glm_kvplan.show.format import whole
from glm_kvplan.show.said import Text, say
from glm_kvplan.workload import Demand, Workload


class PoolsAnswer(NamedTuple):
    """One rank: `layers` are those of its pipeline stage, one of `pp_size`."""

    head: Head
    pp_rank: int
    pp_size: int
    layers: range
    asked_sizes: PoolSizes
    sizes: PoolSizes
    tensors: tuple[TensorShown, ...]
    allocated_bytes: int
    charged_bytes: int
    difference: tuple[DifferenceShown, ...]
    unexplained_bytes: int
    warnings: tuple[Text, ...]


def answer_pools(plan: Plan, workload: Workload | Demand, pp_rank: int | None = None) -> PoolsAnswer:
    """Every tensor of one rank, and how their bytes relate to the charge. Raises as `pools_of`."""
    pools = pools_of(plan, workload, pp_rank)
    found = pools.attribution
    return PoolsAnswer(
        head=head_of(pools.plan),
        pp_rank=pools.pp_rank,
        pp_size=pools.plan.deployment.pp_size,
        layers=pools.stage,
        asked_sizes=pools.asked,
        sizes=pools.sizes,
        tensors=tuple(map(show_tensor, pools.tensors)),
        allocated_bytes=found.allocated,
        charged_bytes=found.charged,
        difference=tuple(DifferenceShown(part.name, part.nbytes, part.reason) for part in found.parts),
        unexplained_bytes=found.rest,
        warnings=(fewer_requests(pools),) if pools.sizes != pools.asked else (),
    )


def fewer_requests(pools: RankPools) -> Text:
    """The warning that the engine grants fewer requests than were asked for."""
    return say(
        "{requests} requests asked; the tokens and state slots admit fewer",
        requests=whole(pools.asked.running_requests),
    )
