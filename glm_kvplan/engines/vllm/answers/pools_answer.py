"""The tensor that one GPU's blocks are, and every layer's view of it: the answer of `kvplan pools`."""

from typing import NamedTuple

from glm_kvplan.engines.answer_head import Head
from glm_kvplan.engines.tensors_shown import TensorShown, show_tensor
from glm_kvplan.engines.vllm.answers.plan_head import head_of
from glm_kvplan.engines.vllm.block_views import LayerViews, backing, layer_views
from glm_kvplan.engines.vllm.blocks import Group
from glm_kvplan.engines.vllm.needed_blocks import NumBlocks, num_blocks
from glm_kvplan.engines.vllm.plan import Plan
from glm_kvplan.show.said import Text
from glm_kvplan.workload import Demand, Workload


class PoolsAnswer(NamedTuple):
    """One GPU. The views overlap: a block holds one group's layers at a time, so their bytes do not add up."""

    head: Head
    sizes: NumBlocks
    block_bytes: int
    block_tokens: int
    groups: tuple[Group, ...]
    tensors: tuple[TensorShown, ...]
    views: tuple[LayerViews, ...]
    allocated_bytes: int
    warnings: tuple[Text, ...] = ()


def answer_pools(plan: Plan, workload: Workload | Demand, pp_rank: int | None = None) -> PoolsAnswer:
    """What a worker allocates for the blocks that flags fix, or that the workload needs. Raises InputError."""
    sizes = num_blocks(plan, workload, pp_rank)
    spec = backing(plan.blocks, sizes.num_blocks)
    return PoolsAnswer(
        head_of(plan),
        sizes,
        plan.blocks.nbytes,
        plan.blocks.size,
        plan.blocks.groups,
        (show_tensor(spec),),
        layer_views(plan.blocks, sizes.num_blocks),
        spec.nbytes,
    )
