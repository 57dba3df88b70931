"""What torch means by an error of a device: out of memory, a size it cannot count, or a device that failed."""

import gc
import re
import traceback
from contextlib import suppress
from typing import Any

from glm_kvplan.allocate.device import Device, import_torch
from glm_kvplan.errors import KvplanError

OUT_OF_MEMORY = 2  # cudaErrorMemoryAllocation
_CUDA = re.compile(r"\b(?:CUDA|HIP) error: ([^\n.]{1,160})")
_CPU_ALLOCATOR = re.compile(r"DefaultCPUAllocator: (?:can't allocate|not enough) memory")
_OVERFLOW = "Storage size calculation overflowed"


class AllocationError(KvplanError):
    """The device ran out of memory on the way. Everything that was taken has been given back."""


class DeviceFailedError(KvplanError):
    """The device itself failed: an illegal access, an uncorrectable ECC error, a lost context."""


def as_failure(error: BaseException, device: Device, taken: int) -> KvplanError | None:
    """`error` as the one line it deserves; None where it is no failure of the device.

    By the exception's type and its cudaError code, or by the text that torch puts there for the code: never by words
    that several failures share. `taken` is what had been taken; the caller has given it back.
    """
    if isinstance(error, RuntimeError) and _OVERFLOW in str(error):
        return AllocationError(
            f"--device {device.name}: a tensor of these sizes is larger than torch can count; give smaller sizes"
        )
    if _out_of_memory(error):
        return AllocationError(
            f"--device {device.name}: out of memory after {taken} bytes; everything was freed; "
            "give --scale, a larger --keep-free, or smaller sizes"
        )
    failed = _device_failure(error)
    if failed is None:
        return None
    return DeviceFailedError(
        f"--device {device.name}: the device failed ({failed}); its memory comes back when this process ends; "
        "look at nvidia-smi -q and the kernel log"
    )


def _out_of_memory(error: BaseException) -> bool:
    types: list[Any] = [MemoryError]
    torch = import_torch()
    for holder in (torch, getattr(torch, "cuda", None)):
        found = getattr(holder, "OutOfMemoryError", None)
        if isinstance(found, type):
            types.append(found)
    if isinstance(error, tuple(types)):
        return True
    if not isinstance(error, RuntimeError):
        return False
    code = getattr(error, "error_code", None)
    if code is not None:
        return bool(code == OUT_OF_MEMORY)
    said = _CUDA.search(str(error))
    return bool(_CPU_ALLOCATOR.search(str(error))) or (said is not None and said[1].strip() == "out of memory")


def _device_failure(error: BaseException) -> str | None:
    """What the device says of its failure, with the cudaError code where torch tells it."""
    if not isinstance(error, RuntimeError):
        return None
    code, said = getattr(error, "error_code", None), _CUDA.search(str(error))
    accelerator = getattr(import_torch(), "AcceleratorError", None)
    if said is None and not (isinstance(accelerator, type) and isinstance(error, accelerator)):
        return None
    text = said[1].strip() if said is not None else " ".join(str(error).split())[:160] or type(error).__name__
    return text if code is None else f"{text}, cudaError {code}"


def let_go(error: BaseException) -> None:
    """Let go of what the frames of a failure hold: half-built objects whose constructors never returned."""
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        traceback.clear_frames(current.__traceback__)
        current = current.__cause__ or current.__context__
    gc.collect()


def give_back(device: Device) -> None:
    """Return the caching allocator's free blocks to the driver; nothing where the device no longer answers."""
    if device.kind == "cuda":
        with suppress(RuntimeError):  # a device that failed answers every call so
            import_torch().cuda.empty_cache()
