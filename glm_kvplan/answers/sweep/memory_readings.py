"""Readings of one rank's memory in a sweep that changes what the rank holds."""

from collections.abc import Iterable

from glm_kvplan.engines.flag import Flag
from glm_kvplan.memory.given import MemoryGiven

_OF_WEIGHTS = ("available_gib", "weights_gib")


def reading_notes(axes: Iterable[str], memory: MemoryGiven, flags: Iterable[Flag]) -> list[str]:
    """What was read on one layout and is taken for others. `axes` are the names that vary, `flags` the engine's."""
    names = list(axes)
    moving = {"gpu", *(flag.name for flag in flags if "weights" in flag.moves)}
    moved = [name for name in names if name in moving]
    read = [name for name in _OF_WEIGHTS if getattr(memory, name) is not None and name not in names]
    if not moved or not read:
        return []
    return [f"{', '.join(read)} is taken as it is at every point, though {', '.join(moved)} moves the weights"]
