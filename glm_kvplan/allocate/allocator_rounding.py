"""How much more than the tensors' own bytes an allocator may count, and why."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from glm_kvplan.allocate.device import (
    CUDA_BLOCK,
    CUDA_GRANULE,
    CUDA_LARGE,
    CUDA_LARGE_SEGMENT,
    CUDA_SMALL,
    CUDA_SMALL_SEGMENT,
)
from glm_kvplan.tensor import TensorSpec


class CudaBounds(NamedTuple):
    """What torch's caching allocator can count for some tensors on a device that held nothing before."""

    least_allocated: int  # every tensor in whole 512-byte blocks
    most_allocated: int  # a large block keeps a remainder of up to 1 MiB instead of splitting it off
    most_reserved: int  # segments of 2 MiB for small blocks, of 20 MiB for middle ones, in steps of 2 MiB above
    most_segments: int


def cuda_bounds(specs: Iterable[TensorSpec]) -> CudaBounds:
    """Bounds from the allocator's rules alone (c10/core/AllocatorConfig.h of torch 2.13)."""
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
