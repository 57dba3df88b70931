"""How many blocks a GPU gets: those that flags fix, or those that a workload needs."""

from typing import NamedTuple

from glm_kvplan.engines.vllm.memory_before import available
from glm_kvplan.engines.vllm.plan import Plan
from glm_kvplan.engines.vllm.workload_cost import workload_cost
from glm_kvplan.errors import InputError
from glm_kvplan.workload import Demand, Workload


class NumBlocks(NamedTuple):
    """The blocks of one GPU."""

    num_blocks: int


def given_blocks(plan: Plan) -> int | None:
    """The blocks that flags fix; None where memory decides."""
    deployment = plan.deployment
    if deployment.num_gpu_blocks_override is not None:
        return deployment.num_gpu_blocks_override
    if deployment.kv_cache_memory_bytes is not None:
        return max(plan.blocks.count(available(plan.rank, plan.gpu).nbytes), 0)
    return None


def num_blocks(plan: Plan, workload: Workload | Demand, pp_rank: int | None = None) -> NumBlocks:
    """The blocks to show or to allocate. Raises InputError for a pipeline rank, and where there is no block."""
    if pp_rank is not None:
        raise InputError("--pp-rank: vLLM runs no pipeline of this model; leave it out")
    given = given_blocks(plan)
    found = workload_cost(plan.blocks, workload).blocks if given is None else given
    if found < 1:
        raise InputError(f"{found} blocks: the flags leave no memory for one")
    return NumBlocks(found)
