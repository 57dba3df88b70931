"""One GPU's memory for blocks, and its blocks beside what a load needs, a line each."""

from glm_kvplan.engines.vllm.block_bounds import BlockBounds
from glm_kvplan.engines.vllm.memory_before import Available
from glm_kvplan.show.format import count, three_digits, whole
from glm_kvplan.show.said import Said, say
from glm_kvplan.units import GIB

_HOW = {
    "given": "{size} GiB a GPU for blocks, as --kv-cache-memory-bytes says",
    "measured": "{size} GiB a GPU for blocks, as the boot log prints",
    "estimated": "{size} GiB a GPU for blocks (estimated, {low} to {high})",
    "of_format": "{size} GiB a GPU for blocks beside {checkpoint} weights (estimated, {low} to {high})",
}


def memory_line(memory: Available) -> Said:
    if memory.nbytes < 0:
        template = "{size} GiB a GPU are lacking before the first block"
        if memory.how == "estimated":
            template += " (estimated, +-{error} GiB)"
        error = f"{(memory.high_bytes - memory.low_bytes) / 2 / GIB:.1f}"
        return say(template, size=f"{-memory.nbytes / GIB:.1f}", error=error)
    if memory.how != "estimated":
        return say(_HOW[memory.how], size=f"{memory.nbytes / GIB:.2f}")
    low, high = (f"{end / GIB:.1f}" for end in (memory.low_bytes, memory.high_bytes))
    template = _HOW["estimated" if memory.checkpoint is None else "of_format"]
    return say(template, size=f"{memory.nbytes / GIB:.1f}", low=low, high=high, checkpoint=memory.checkpoint or "")


def bounds_line(bounds: BlockBounds, *, estimated: bool) -> Said:
    """`estimated`: so is the memory that they come from."""

    def about(number: int) -> str:
        return f"~{three_digits(number)}" if estimated else whole(number)

    return say(
        "a GPU has {blocks} blocks of {tokens}: the load needs {floor}, memory gives {ceiling}",
        blocks=whole(bounds.num_blocks) if bounds.num_blocks != bounds.ceiling_blocks else about(bounds.num_blocks),
        tokens=count(bounds.block_tokens, "token"),
        floor=whole(bounds.floor_blocks),
        ceiling=about(bounds.ceiling_blocks),
    )
