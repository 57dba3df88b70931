"""One GPU's blocks allocated for real beside what was predicted: the answer of `kvplan validate`."""

from collections.abc import Mapping
from fractions import Fraction
from typing import NamedTuple

from glm_kvplan.allocate.device import Device
from glm_kvplan.allocate.measure import Measure
from glm_kvplan.allocate.validation import Allocating, environment, validate
from glm_kvplan.engines.answer_head import Head
from glm_kvplan.engines.tensors_shown import TensorFound, show_tensor
from glm_kvplan.engines.vllm.answers.plan_head import head_of
from glm_kvplan.engines.vllm.block_allocation import BlockAllocation, ViewFound
from glm_kvplan.engines.vllm.block_views import backing, layer_views
from glm_kvplan.engines.vllm.needed_blocks import NumBlocks, num_blocks
from glm_kvplan.engines.vllm.plan import Plan
from glm_kvplan.show.format import count
from glm_kvplan.show.said import Text, say
from glm_kvplan.workload import Demand, Workload


class ValidateAnswer(NamedTuple):
    """`views` are the layers' caches over the one tensor."""

    head: Head
    flags: Mapping[str, object]
    sizes: NumBlocks
    environment: Mapping[str, str]
    device: Device
    built_by: str
    allocated_sizes: NumBlocks
    scale: float
    free_bytes: int | None
    keep_free_bytes: int
    touched: bool
    seconds: float
    block_bytes: int
    block_tokens: int
    tensors: tuple[TensorFound, ...]
    views: tuple[ViewFound, ...]
    unexpected: tuple[str, ...]
    predicted_bytes: int
    taken_bytes: int
    measures: tuple[Measure, ...]
    ok: bool
    warnings: tuple[Text, ...]


def answer_validate(plan: Plan, workload: Workload | Demand, pp_rank: int | None, how: Allocating) -> ValidateAnswer:
    """Allocate the blocks' tensor, lay every view over it: the verdict, tensors beside predictions, three measures.

    Raises InputError, and what `allocate.validation.validate` raises.
    """
    blocks, asked = plan.blocks, num_blocks(plan, workload, pp_rank)
    made: list[BlockAllocation] = []
    built_by = "torch"
    if how.own_classes("vllm"):
        from glm_kvplan.engines.vllm.own_blocks import OwnBlocks, check_release

        built_by = f"vllm {check_release(plan.profile)}"

    def make(device: Device, sizes: NumBlocks) -> BlockAllocation:
        views = layer_views(blocks, sizes.num_blocks)
        made.append(BlockAllocation(views, device) if how.package is None else OwnBlocks(plan, views, device))
        return made[-1]

    found = validate(
        lambda sizes: (backing(blocks, sizes.num_blocks),),
        asked,
        how,
        shrink=_shrink,
        make=make,
        built_by=built_by,
    )
    views = tuple(made[-1].found)
    warnings: list[Text] = []
    if found.scale != 1:
        blocks_left = count(found.sizes.num_blocks, "block")
        warnings.append(
            say("scaled to {share} to fit: {blocks}", share=f"{float(found.scale):.2%}", blocks=blocks_left)
        )
    return ValidateAnswer(
        head=head_of(plan),
        flags=plan.flags,
        sizes=asked,
        environment=environment(),
        device=found.device,
        built_by=found.built_by,
        allocated_sizes=found.sizes,
        scale=float(found.scale),
        free_bytes=found.free_bytes,
        keep_free_bytes=found.keep_free,
        touched=found.touched,
        seconds=found.seconds,
        block_bytes=blocks.nbytes,
        block_tokens=blocks.size,
        tensors=tuple(TensorFound(show_tensor(row.spec), row.taken, row.equal) for row in found.rows),
        views=views,
        unexpected=found.unexpected,
        predicted_bytes=found.predicted,
        taken_bytes=found.taken,
        measures=found.measures,
        ok=found.ok and all(view.equal for view in views),
        warnings=tuple(warnings),
    )


def _shrink(sizes: NumBlocks, factor: Fraction) -> NumBlocks:
    return NumBlocks(max(int(sizes.num_blocks * factor), 1))
