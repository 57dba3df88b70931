"""One GPU's memory for blocks as an answer shows it, and in a line."""

from typing import NamedTuple

from glm_kvplan.engines.vllm.memory_before import Available
from glm_kvplan.memory.budget import MemoryPart
from glm_kvplan.show.said import Said, say
from glm_kvplan.units import GIB

_HOW = {
    "given": "{size} GiB a GPU for blocks, as --kv-cache-memory-bytes says",
    "measured": "{size} GiB a GPU for blocks, as the boot log prints",
    "estimated": "{size} GiB a GPU for blocks (estimated, {low} to {high})",
}


class MemoryShown(NamedTuple):
    """Bytes of one GPU that become blocks, and what they may be. `how`: given, measured or estimated."""

    how: str
    nbytes: int
    low_bytes: int
    high_bytes: int
    parts: tuple[MemoryPart, ...]

    @property
    def certainty(self) -> str:
        """Of what follows from it."""
        return "estimated" if self.how == "estimated" else "derived"


def show_memory(memory: Available) -> MemoryShown:
    return MemoryShown(memory.how, memory.nbytes, memory.low, memory.high, memory.parts)


def memory_line(memory: MemoryShown) -> Said:
    if memory.how != "estimated":
        return say(_HOW[memory.how], size=f"{memory.nbytes / GIB:.2f}")
    low, high = (f"{end / GIB:.1f}" for end in (memory.low_bytes, memory.high_bytes))
    return say(_HOW[memory.how], size=f"{memory.nbytes / GIB:.1f}", low=low, high=high)
