"""What a user knows of a GPU's memory, in GiB, before anything is estimated."""

from typing import NamedTuple


class MemoryGiven(NamedTuple):
    """What is None is estimated from the GPU and the checkpoint. `available_gib` is what the engine's own log calls
    available: after the weights, and after whatever else it measures before it sizes.
    """

    pre_gib: float | None = None
    available_gib: float | None = None
    weights_gib: float | None = None
    draft_weights_gib: float | None = None
    checkpoint: str | None = None
