"""The block: how many tokens it holds, so that a layer's rows are at least as large as a layer's state."""

from glm_kvplan.engines.vllm.components import compress_tail, index_keys, kda_state
from glm_kvplan.engines.vllm.resolve.site import Decisions
from glm_kvplan.engines.vllm.resolve.token_cache import TokenCache

LARGEST_PAGE_OF_INDEX = 64  # pooled keys in a page of the indexer's kernels; 32 too but on SM120
KERNEL_UNIT = 128  # tokens the MLA decode kernels align physical blocks to


def index_unit(generation: int, pool: int) -> int:
    """Tokens a block is a multiple of for the indexer: its smallest page (get_paged_mqa_page_sizes)."""
    return pool * (LARGEST_PAGE_OF_INDEX if generation == 12 else LARGEST_PAGE_OF_INDEX // 2)


def block_size(given: Decisions, cache: TokenCache, state_bytes: int) -> int:
    """Tokens of a block, as the platform aligns it for a model with state layers.

    Source: platforms/interface.py:940 at 0.33.0 (`_align_hybrid_block_size`).
    """
    site = given.site
    asked = given.value("block_size")
    index = index_unit(cache.backend.generation, site.geometry.index_kpool)
    preferred = index if site.profile.unit_of_all_backends else cache.backend.block_multiple
    unit = max(KERNEL_UNIT, given.whole("block_size", preferred))
    sized = unit * -(-state_bytes // (unit * cache.sized_row_bytes))
    size = index * -(-sized // index)
    given.decide(
        "block_size",
        size,
        f"the fewest tokens, in steps of {unit}, whose rows in a layer ({cache.sized_row_bytes} bytes a token) are as "
        f"large as its state ({state_bytes:,} bytes)"
        + (f"; a multiple of the indexer's {index}" if size != sized else "")
        + _beside(asked, unit, size),
        "block_size",
    )
    return size


def _beside(asked: object, unit: int, size: int) -> str:
    """What becomes of a --block-size that is not the block's size."""
    if asked is None or asked == size:
        return ""
    if asked == unit:
        return f"; --block-size {asked} is its step, not its size"
    return f"; --block-size {asked} is below the smallest step"


def tail_slots(given: Decisions, size: int, tokens: int) -> int:
    """Raw keys a request's tail holds in one layer. Raises RefusedError where the ring does not divide the block."""
    pool = given.site.geometry.index_kpool
    if not given.site.profile.tail_ring:
        return pool
    pools = -(-(pool + tokens) // pool)
    ring = pool * (1 << (pools - 1).bit_length())
    key = index_keys.key_bytes(given.site.geometry)
    if (
        not given.site.profile.blocks_packed
        and ring * compress_tail.slot_bytes(given.site.geometry) > size // pool * key
    ):
        given.refuse(
            f"{tokens} draft tokens need a tail ring of {ring} keys, which is larger than the page of index keys it "
            "lies in",
            "groups",
        )
    if size % ring:
        given.refuse(
            f"{tokens} draft tokens need a tail ring of {ring} keys, which does not divide the block of {size} tokens",
            "ring",
        )
    return ring


def state_bytes(given: Decisions, conv_dtype: str, state_dtype: str, tensor: int, tokens: int) -> int:
    """Bytes of one state in one KDA layer on one GPU, without padding."""
    geometry = given.site.geometry
    return kda_state.conv_bytes(geometry, conv_dtype, tensor, tokens) + kda_state.recurrent_bytes(
        geometry, state_dtype, tensor
    )
