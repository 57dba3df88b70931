"""How much more than the tensors' own bytes an allocator may count, and why."""

import os
import re
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from glm_kvplan.allocate.device import (
    CUDA_BLOCK,
    CUDA_GRANULE,
    CUDA_LARGE,
    CUDA_LARGE_SEGMENT,
    CUDA_SMALL,
    CUDA_SMALL_SEGMENT,
    import_torch,
)
from glm_kvplan.tensor import TensorSpec

# Settings of PYTORCH_ALLOC_CONF that leave blocks and segments as they are, and the one that is known here.
_HARMLESS = {
    "expandable_segments", "garbage_collection_threshold", "release_lock_on_cudamalloc",
    "pinned_use_cuda_host_register", "pinned_num_register_threads", "pinned_use_background_threads",
}  # fmt: skip
Allocator = Literal["native", "expandable", "other"]


class CudaBounds(NamedTuple):
    """What torch's caching allocator can count for some tensors on a device that held nothing before."""

    least_allocated: int  # every tensor in whole 512-byte blocks
    most_allocated: int  # a large block keeps a remainder of up to 1 MiB instead of splitting it off
    most_reserved: int
    most_segments: int  # pieces that the driver was asked for


def this_allocator() -> Allocator:
    """How this process's torch allocates on a GPU: in segments, in expandable ones, or in a way nothing is said of."""
    settings = os.environ.get("PYTORCH_ALLOC_CONF") or os.environ.get("PYTORCH_CUDA_ALLOC_CONF") or ""
    found = dict(re.findall(r"(\w+):([^,]+)", settings))
    backend = getattr(import_torch().cuda, "get_allocator_backend", lambda: "native")()
    if backend != "native" or found.keys() - _HARMLESS:
        return "other"
    return "expandable" if found.get("expandable_segments", "").strip().lower() == "true" else "native"


def cuda_bounds(specs: Iterable[TensorSpec], allocator: Allocator = "native") -> CudaBounds:
    """Bounds from the allocator's rules alone (c10/core/AllocatorConfig.h and CUDACachingAllocator.cpp of torch 2.13).

    In segments: 2 MiB for small blocks, 20 MiB for middle ones, whole 2 MiB above. Expandable: one stretch for small
    blocks that grows by 2 MiB and one for all others that grows by 20 MiB; blocks lie end to end in them.
    """
    allocated = slack = small = middle = large = large_count = 0
    for nbytes in _tensor_bytes(specs):
        block = _up(nbytes, CUDA_BLOCK)
        allocated += block
        if block <= CUDA_SMALL:
            small += block
            continue
        slack += CUDA_SMALL
        if block < CUDA_LARGE:
            middle += block
        else:
            large += _up(block, CUDA_GRANULE)
            large_count += 1
    if allocator == "expandable":
        stretches = (small, CUDA_SMALL_SEGMENT), (allocated - small, CUDA_LARGE_SEGMENT)
        reserved = sum(_up(nbytes, step) for nbytes, step in stretches)
        return CudaBounds(allocated, allocated, reserved, sum(-(-nbytes // step) for nbytes, step in stretches))
    # A new segment is opened only when no open one has room, so segments are at least half full, but for the last.
    small_segments = 2 * small // CUDA_SMALL_SEGMENT + 1 if small else 0
    middle_segments = 2 * middle // CUDA_LARGE_SEGMENT + 1 if middle else 0
    reserved = small_segments * CUDA_SMALL_SEGMENT + middle_segments * CUDA_LARGE_SEGMENT + large
    segments = small_segments + middle_segments + large_count
    return CudaBounds(allocated, allocated + slack, reserved, segments)


def _tensor_bytes(specs: Iterable[TensorSpec]) -> Iterator[int]:
    for spec in specs:
        if spec.place == "device":
            yield from (spec.nbytes // spec.count for _ in range(spec.count))


def _up(nbytes: int, step: int) -> int:
    return -(-nbytes // step) * step
