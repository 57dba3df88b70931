"""What a load needs of a GPU's blocks, and what its memory gives."""

from typing import NamedTuple

from glm_kvplan.contexts import Contexts
from glm_kvplan.engines.vllm.served_requests import blocks_of_mix
from glm_kvplan.engines.vllm.starting import Begun, begin
from glm_kvplan.memory.given import MemoryGiven

FIXES_BLOCKS = ("kv_cache_memory_bytes", "num_gpu_blocks_override")


class BlockBounds(NamedTuple):
    """Blocks of one GPU, of `block_tokens` tokens: those there are, those that a load needs with the one that is never
    given out, and those that memory gives where no flag fixes them.
    """

    num_blocks: int
    block_tokens: int
    floor_blocks: int
    ceiling_blocks: int


def block_bounds(begun: Begun, given: MemoryGiven, contexts: Contexts, requests: int) -> BlockBounds:
    """The bounds for so many requests at once in one engine. Raises InputError, RefusedError as a start does."""
    fixed = {name: None for name in FIXES_BLOCKS if begun.plan.flags.get(name) is not None}
    unbound = begin(begun.plan.with_flags(**fixed), given) if fixed else begun
    floor = blocks_of_mix(begun.start, contexts, requests) + 1
    return BlockBounds(begun.start.count, begun.plan.blocks.tokens_a_block, floor, unbound.start.count)
