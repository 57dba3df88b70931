"""Tensor specs made real with torch, and given back whatever happens."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, NamedTuple, Self

from glm_kvplan.allocate.device import Device, import_torch
from glm_kvplan.allocate.device_failures import as_failure, give_back
from glm_kvplan.tensor import TensorSpec
from glm_kvplan.units import GIB

CHUNK = 1 * GIB  # bytes zeroed between two calls of `progress`

Progress = Callable[[int], None]


class Taken(NamedTuple):
    """What torch says of the tensors of one spec."""

    tensors: int
    dtype: str
    shape: tuple[int, ...]
    nbytes: int


def account(tensors: Sequence[Any]) -> Taken:
    """What torch says of equal tensors; there is at least one."""
    first = tensors[0]
    dtype = str(first.dtype).removeprefix("torch.")
    return Taken(len(tensors), dtype, tuple(first.shape), sum(tensor.nbytes for tensor in tensors))


class Allocation:
    """The tensors of some specs on one device. Use it in a `with` block: leaving the block frees them.

    Specs whose place is the host lie in host memory (on meta they lie on meta).
    """

    def __init__(self, device: Device) -> None:
        self.device = device
        self._torch = import_torch()
        self._tensors: list[tuple[TensorSpec, list[Any]]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()

    def take(self, specs: Iterable[TensorSpec], *, touch: bool = True, progress: Progress | None = None) -> None:
        """Allocate every tensor; with `touch`, fill it with zeros as the engine does.

        `progress` is told the bytes done since its last call. On any exception, Ctrl-C included, all tensors of this
        allocation are freed first. Raises AllocationError where the device has no memory left, DeviceFailedError where
        it fails otherwise.
        """
        torch = self._torch
        try:
            for spec in specs:
                tensors: list[Any] = []
                self._tensors.append((spec, tensors))
                on = self.device.name if spec.place == "device" or self.device.kind == "meta" else "cpu"
                for _ in range(spec.count):
                    tensor = torch.empty(spec.shape, dtype=getattr(torch, spec.dtype), device=on)
                    tensors.append(tensor)
                    if touch:
                        self._zero(tensor, progress)
                    elif progress is not None:
                        progress(tensor.nbytes)
            self.synchronize()
        except BaseException as error:
            taken = sum(each.nbytes for each in self.taken().values())
            self.release()
            failure = as_failure(error, self.device, taken)
            if failure is not None:
                raise failure from None
            raise

    def taken(self) -> dict[str, Taken]:
        """Torch's own account of the tensors, by spec name."""
        return {spec.name: account(tensors) for spec, tensors in self._tensors if tensors}

    def unexpected(self) -> tuple[str, ...]:
        """Nothing: the specs are all there is."""
        return ()

    def storage_bytes(self) -> int:
        """Bytes of the storages behind the tensors on the device."""
        return sum(
            tensor.untyped_storage().nbytes()
            for spec, tensors in self._tensors
            if spec.place == "device"
            for tensor in tensors
        )

    def release(self) -> None:
        """Give everything back, the caching allocator's blocks as well."""
        for _, tensors in self._tensors:
            for tensor in tensors:
                # A traceback may still hold the tensor; its storage goes all the same.
                with suppress(RuntimeError):  # of a device that no longer answers
                    tensor.untyped_storage().resize_(0)
            tensors.clear()
        self._tensors.clear()
        give_back(self.device)

    def synchronize(self) -> None:
        """Wait for the device."""
        if self.device.kind == "cuda":
            self._torch.cuda.synchronize(self.device.name)

    def _zero(self, tensor: Any, progress: Progress | None) -> None:
        if tensor.nbytes <= CHUNK or tensor.device.type == "meta":
            tensor.zero_()
            if progress is not None:
                progress(tensor.nbytes)
            return
        flat, step = tensor.view(-1), CHUNK // tensor.element_size()
        for first in range(0, flat.numel(), step):
            part = flat[first : first + step]
            part.zero_()
            if progress is not None:
                self.synchronize()
                progress(part.nbytes)
