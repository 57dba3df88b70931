"""What a user knows of a GPU's memory, in GiB, before anything is estimated."""

from typing import NamedTuple

from glm_kvplan.memory.calibration import Calibration


class MemoryGiven(NamedTuple):
    """What is None is estimated from the GPU and the checkpoint. `available_gib` is what the engine's own log calls
    available: after the weights, and after whatever else it measures before it sizes.
    """

    pre_gib: float | None = None
    available_gib: float | None = None
    weights_gib: float | None = None
    draft_weights_gib: float | None = None
    checkpoint: str | None = None
    calibration: Calibration | None = None  # a boot that stands in for estimates
    graphs_gib: float | None = None  # taken between the pools and the ready server: CUDA graphs

    @property
    def of_weights(self) -> bool:
        """Something was read that other weights on a rank would change."""
        return not self.available_gib is self.weights_gib is self.draft_weights_gib is None

    def without_weights(self, *, same_load: bool) -> "MemoryGiven":
        """What still holds where the weights of a rank are others; `same_load`: so does what was free before them."""
        pre = self.pre_gib if same_load else None
        return MemoryGiven(pre, checkpoint=self.checkpoint, calibration=self.calibration)
