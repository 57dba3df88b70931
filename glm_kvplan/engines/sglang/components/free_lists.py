"""Free lists: the allocators' own lists of state slots and token pages that nobody holds."""

from collections.abc import Iterator

from glm_kvplan.engines.sglang.components import pool_units
from glm_kvplan.engines.sglang.components.component import Component, Part, SegmentKind
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.rank import Rank
from glm_kvplan.tensor import TensorSpec

ENTRY_BYTES = 8  # int64
LISTS = SegmentKind("free lists", "free lists and pointer tables", "rank")


def difference(rank: Rank, sizes: PoolSizes) -> Iterator[Part]:
    slots, pages = _entries(rank, sizes)
    yield Part("free lists", (slots + pages) * ENTRY_BYTES, "the allocators' own lists")


def tensors(rank: Rank, sizes: PoolSizes) -> tuple[TensorSpec, ...]:
    slots, pages = _entries(rank, sizes)
    return (
        TensorSpec("mamba_allocator.free_slots", "allocator", 1, "int64", (slots,), "device", False, _SLOTS, NAME),
        TensorSpec("token_allocator.free_pages", "allocator", 1, "int64", (pages,), "device", False, _PAGES, NAME),
    )


def _entries(rank: Rank, sizes: PoolSizes) -> tuple[int, int]:
    """State slots and token pages."""
    deployment = rank.deployment
    return pool_units.effective_state_slots(deployment, sizes), sizes.tokens // deployment.page_size


NAME = "free_lists"
_SLOTS = "mem_cache/memory_pool.py:1459-1462 at 0.5.23"
_PAGES = "mem_cache/allocator/paged.py:395-398 at 0.5.23"

COMPONENT = Component(
    name=NAME,
    title="Free lists",
    unit="rank",
    segment=LISTS,
    tensors=tensors,
    difference=difference,
)
