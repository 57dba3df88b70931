"""What an answer says of a rank's memory map."""

from typing import NamedTuple

from glm_kvplan.engines.sglang.sizing.pool_map import MemoryMap, Segment


class MapShown(NamedTuple):
    """Segments that add up to `total_bytes`."""

    total_bytes: int
    segments: tuple[Segment, ...]


def show_map(memory: MemoryMap) -> MapShown:
    return MapShown(memory.total, memory.segments)
