"""Memory seen from outside the tensors: the framework's allocator and the driver, before and after."""

from typing import NamedTuple

from glm_kvplan.allocate.allocator_rounding import cuda_bounds, this_allocator
from glm_kvplan.allocate.device import (
    CPU_GRANULE,
    CUDA_GRANULE,
    Device,
    available_memory,
    import_torch,
    resident_memory,
)
from glm_kvplan.tensor import TensorSpec, device_bytes

_OTHER = "PYTORCH_ALLOC_CONF sets rules of its own"
_ROUNDING = {
    "native": (
        "whole 512-byte blocks; a large block keeps up to 1 MiB rather than split it off",
        "segments of 2 MiB (small) and 20 MiB (middle), whole 2 MiB above 10 MiB",
    ),
    "expandable": (
        "whole 512-byte blocks",
        "expandable segments: all small blocks end to end in steps of 2 MiB, all others in steps of 20 MiB",
    ),
    "other": (_OTHER, _OTHER),
}


class Measure(NamedTuple):
    """One outside view. `nbytes` None: the device has no such counter; `explained` None: nothing can be said."""

    name: str
    nbytes: int | None
    difference: int | None  # to the tensors' own bytes
    explained: bool | None
    explanation: str


class Meter:
    """Reads the counters of a device once before an allocation and once after it."""

    def __init__(self, device: Device) -> None:
        self.device = device
        torch = import_torch()
        # The first work on a device takes memory of its own (context, thread pools); it is not the pools'.
        warm = torch.zeros(1 << 16, device=device.name)
        if device.kind == "cuda":
            torch.cuda.synchronize(device.name)
            del warm
            torch.cuda.empty_cache()
            self._before = (*self._cuda_counters(), self._available())
        else:
            self._resident = resident_memory()

    def read(self, specs: tuple[TensorSpec, ...], storage: int, *, touched: bool) -> tuple[Measure, ...]:
        """The framework's and the driver's view of an allocation that still stands, its storages `storage` bytes."""
        own = device_bytes(specs)
        if self.device.kind == "cuda":
            return self._read_cuda(specs, own)
        framework = Measure("framework: storages", storage, storage - own, storage == own, "no allocator rounds here")
        if self.device.kind == "meta":
            return (framework, Measure("driver", None, None, None, "meta takes no memory"))
        own += sum(spec.nbytes for spec in specs if spec.place == "host")
        return (framework, self._read_resident(specs, own, touched))

    def _read_resident(self, specs: tuple[TensorSpec, ...], own: int, touched: bool) -> Measure:
        name, now = "driver: resident memory", resident_memory()
        if now is None or self._resident is None:
            return Measure(name, None, None, None, "this system has no /proc/self/statm")
        gone = now - self._resident
        if not touched:
            return Measure(name, gone, gone - own, None, "pages that were never written are not backed by memory")
        granularity = CPU_GRANULE * sum(spec.count for spec in specs)
        return Measure(
            name,
            gone,
            gone - own,
            abs(gone - own) <= granularity,
            f"pages at the ends of a tensor, 2 MiB a tensor at most: {granularity:,} B",
        )

    def _read_cuda(self, specs: tuple[TensorSpec, ...], own: int) -> tuple[Measure, ...]:
        allocator = this_allocator()
        bounds = cuda_bounds(specs, "native" if allocator == "other" else allocator)
        known = None if allocator == "other" else True
        blocks, segments = _ROUNDING[allocator]
        requested, allocated, reserved = (
            after - before for after, before in zip(self._cuda_counters(), self._before[:3], strict=True)
        )
        gone = self._before[3] - self._available()
        driver_slack = CUDA_GRANULE * bounds.most_segments
        return (
            Measure("framework: requested", requested, requested - own, requested == own, "the tensors alone"),
            Measure(
                "framework: allocated",
                allocated,
                allocated - own,
                known and bounds.least_allocated <= allocated <= bounds.most_allocated,
                blocks,
            ),
            Measure(
                "framework: reserved",
                reserved,
                reserved - own,
                known and allocated <= reserved <= bounds.most_reserved,
                segments,
            ),
            Measure(
                "driver: free memory",
                gone,
                gone - own,
                abs(gone - reserved) <= driver_slack,
                "reserved segments in the driver's pages of 2 MiB; other processes on the card show here too",
            ),
        )

    def _cuda_counters(self) -> tuple[int, int, int]:
        stats = import_torch().cuda.memory_stats(self.device.name)
        return (
            int(stats.get("requested_bytes.all.current", 0)),
            int(stats.get("allocated_bytes.all.current", 0)),
            int(stats.get("reserved_bytes.all.current", 0)),
        )

    def _available(self) -> int:
        return available_memory(self.device) or 0
