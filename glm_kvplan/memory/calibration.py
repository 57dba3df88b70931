"""What one boot of the user's own printed, for the next plan on the same cards."""

from typing import NamedTuple

from glm_kvplan.errors import InputError
from glm_kvplan.memory.gpu import Gpu
from glm_kvplan.memory.placement import Placement

# Boots of one machine: 0.84 to 1.22 GiB were taken on an H100, 2.64 (TP 4) and 2.77 (TP 8) on a B200 server.
BOOT_TO_BOOT_GIB = 0.2
SAME_WEIGHTS = 0.01  # share of an estimate that printed weights of that checkpoint lie within


class Calibration(NamedTuple):
    """One boot, in GiB of one rank. Its weights serve a plan that places the same checkpoint alike."""

    source: str
    gpu: Gpu
    placement: Placement
    checkpoint: str
    pre_gib: float
    weights_gib: float
    draft_weights_gib: float | None
    left_gib: float  # taken beside the weights before the pools are sized
    graphs_off_gib: float | None  # its CUDA graphs, less what is estimated for them; None where it did not print it

    @property
    def taken_gib(self) -> float:
        """What the card did not show before the load."""
        return self.gpu.memory_mib / 1024 - self.pre_gib

    def require(self, gpu: Gpu) -> None:
        """Raises InputError where it is of another card."""
        if gpu.memory_mib != self.gpu.memory_mib or gpu.vendor != self.gpu.vendor:
            raise InputError(
                f"--calibrate {self.source} is a boot on {self.gpu.name} ({self.gpu.memory_mib} MiB) and the plan is "
                f"for {gpu.name} ({gpu.memory_mib} MiB): give --gpu, or a boot of that card"
            )

    def of_context(self, placement: Placement) -> bool:
        """What it took before the load holds for this placement: both communicate, or neither does."""
        return (self.placement.gpus == 1) == (placement.gpus == 1)

    def of_weights(self, placement: Placement, checkpoint: str, estimated_gib: float) -> bool:
        """Its weights are those of this placement: as wide and as large, or of the same kernels and checkpoint."""
        if len(placement.stages) > 1 or self.placement.widths != placement.widths:
            return False
        if abs(self.weights_gib - estimated_gib) <= SAME_WEIGHTS * estimated_gib:
            return True
        alike = self.placement._replace(draft=placement.draft, mtp_draft=placement.mtp_draft, notes=placement.notes)
        return alike == placement and checkpoint == self.checkpoint

    def of_draft(self, placement: Placement) -> bool:
        """Its draft is this placement's too; the weights are."""
        return self.draft_weights_gib is not None and placement.mtp_draft == self.placement.mtp_draft
