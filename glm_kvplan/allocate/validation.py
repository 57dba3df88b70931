"""Take the pools' memory for real, measure it three ways, and give it back."""

import platform
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from types import TracebackType
from typing import Generic, NamedTuple, Protocol, Self, TypeVar

from glm_kvplan.allocate.allocation import Allocation, Progress, Taken
from glm_kvplan.allocate.allocator_rounding import Allocator, cuda_bounds, this_allocator
from glm_kvplan.allocate.device import Device, available_memory, find_device, import_torch
from glm_kvplan.allocate.device_failures import as_failure
from glm_kvplan.allocate.measure import Measure, Meter
from glm_kvplan.errors import InputError
from glm_kvplan.tensor import TensorSpec, device_bytes
from glm_kvplan.units import GIB

_SCALE_STEPS = 1 << 20

S = TypeVar("S")  # an engine's pool sizes
Build = Callable[[S], tuple[TensorSpec, ...]]
Shrink = Callable[[S, Fraction], S]


class Builder(Protocol):
    """Something that takes memory for specs, tells what it took, and gives it back at the end of its `with` block."""

    def __enter__(self) -> Self: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...

    def take(self, specs: Iterable[TensorSpec], *, touch: bool = True, progress: Progress | None = None) -> None: ...

    def taken(self) -> dict[str, Taken]: ...

    def unexpected(self) -> tuple[str, ...]: ...

    def storage_bytes(self) -> int: ...


Make = Callable[[Device, S], Builder]


class Row(NamedTuple):
    """One spec and what was found in its place; `taken` None: no such tensor."""

    spec: TensorSpec
    taken: Taken | None

    @property
    def equal(self) -> bool:
        spec = self.spec
        return self.taken == Taken(spec.count, spec.dtype, spec.shape, spec.nbytes)


class Allocating(NamedTuple):
    """How memory is taken: where, how much is left, and whose classes build it (None: torch alone).

    `begin` is told the bytes to come, `progress` the bytes done.
    """

    device: str = "auto"
    keep_free: int = 1 * GIB
    scale: bool = False
    touch: bool = True
    package: str | None = None
    begin: Callable[[int], None] | None = None
    progress: Progress | None = None

    def own_classes(self, package: str) -> bool:
        """Whether an engine's own classes are to build it. Raises InputError for another's than `package`."""
        if self.package not in (None, package):
            raise InputError(f"--with {self.package!r} is not known; use {package}")
        return self.package is not None


class Validation(NamedTuple, Generic[S]):
    """What was predicted, what was taken, and what the framework and the driver say of it."""

    device: Device
    asked: S
    sizes: S  # smaller than `asked` where the pools were scaled to fit
    scale: Fraction  # sizes / asked, 1 where nothing was scaled
    free_bytes: int | None  # on the device, before
    keep_free: int
    rows: tuple[Row, ...]
    unexpected: tuple[str, ...]  # tensors the engine built and the specs do not have
    measures: tuple[Measure, ...]
    touched: bool
    seconds: float
    built_by: str  # "torch" or the engine's release

    @property
    def predicted(self) -> int:
        """Bytes of the specs, host tensors included."""
        return sum(row.spec.nbytes for row in self.rows)

    @property
    def taken(self) -> int:
        """Bytes of the tensors, by torch's own count."""
        return sum(row.taken.nbytes for row in self.rows if row.taken is not None)

    @property
    def ok(self) -> bool:
        """The verdict: every tensor is there with its dtype, shape and bytes, and no other is."""
        return not self.unexpected and all(row.equal for row in self.rows)


def validate(
    build: Build[S],
    sizes: S,
    how: Allocating,
    *,
    shrink: Shrink[S],
    make: Make[S] | None = None,
    built_by: str = "torch",
) -> Validation[S]:
    """Allocate the tensors `build(sizes)` describes, compare them with the specs, measure, and free everything.

    What does not fit into the device's free memory less `keep_free` bytes is refused before anything is taken, or
    with `scale` made smaller by `shrink`, all in proportion. `make` puts other tensors in the place of ours (the
    engine's own pools), and `built_by` names them. Raises InputError (device, sizes), MissingTorchError,
    AllocationError, DeviceFailedError.
    """
    target = find_device(how.device)
    with _failures_in_one_line(target):
        meter = Meter(target)
        available = available_memory(target)
    limit = None if available is None else available - how.keep_free
    asked, sizes, factor = sizes, *fit(build, sizes, shrink, target, limit, how.scale)
    specs = build(sizes)
    if how.begin is not None:
        how.begin(sum(spec.nbytes for spec in specs))
    start = time.perf_counter()
    with _failures_in_one_line(target), Allocation(target) if make is None else make(target, sizes) as allocation:
        allocation.take(specs, touch=how.touch, progress=how.progress)
        seconds = time.perf_counter() - start
        measures = meter.read(specs, allocation.storage_bytes(), touched=how.touch)
        taken, unexpected = allocation.taken(), allocation.unexpected()
    rows = tuple(Row(spec, taken.get(spec.name)) for spec in specs)
    return Validation(
        target, asked, sizes, factor, available, how.keep_free, rows, unexpected, measures, how.touch, seconds, built_by
    )


@contextmanager
def _failures_in_one_line(device: Device) -> Iterator[None]:
    """A device that fails while it is asked or measured is one line, too."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        failure = as_failure(error, device, 0)
        if failure is None:
            raise
        raise failure from None


def fit(
    build: Build[S], sizes: S, shrink: Shrink[S], device: Device, limit: int | None, scale: bool
) -> tuple[S, Fraction]:
    """The sizes whose tensors fit into `room` bytes (None: anything does), and the share of the asked ones they are.

    Raises InputError where they do not fit and `scale` is False, or where nothing fits.
    """
    need = needed_bytes(build(sizes), device)
    if limit is None or need <= limit:
        return sizes, Fraction(1)
    if not scale:
        raise InputError(
            f"--device {device.name}: {need} bytes are needed and {max(limit, 0)} are free after --keep-free; "
            "give --scale to shrink the pools in proportion, or smaller sizes"
        )
    low, high = 0, _SCALE_STEPS  # `high` never fits
    while high - low > 1:
        middle = (low + high) // 2
        fits = needed_bytes(build(shrink(sizes, Fraction(middle, _SCALE_STEPS))), device) <= limit
        low, high = (middle, high) if fits else (low, middle)
    if not low:
        raise InputError(f"--device {device.name}: not even the smallest pools fit into {max(limit, 0)} free bytes")
    factor = Fraction(low, _SCALE_STEPS)
    return shrink(sizes, factor), factor


def needed_bytes(specs: tuple[TensorSpec, ...], device: Device) -> int:
    """Bytes the device must have free: what its allocator may reserve on a GPU, all tensors on the CPU."""
    if device.kind == "cuda":
        allocator = this_allocator()
        kinds: tuple[Allocator, ...] = ("native", "expandable") if allocator == "other" else (allocator,)
        return max(cuda_bounds(specs, kind).most_reserved for kind in kinds)
    if device.kind == "cpu":
        return sum(spec.nbytes for spec in specs)
    return device_bytes(specs)


def environment() -> dict[str, str]:
    """The machine and the versions a record of a validation names."""
    from glm_kvplan import __version__

    torch = import_torch()
    return {
        "machine": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": sys.version.split()[0],
        "torch": str(torch.__version__),
        "cuda": str(torch.version.cuda or "none"),
        "glm_kvplan": __version__,
    }
