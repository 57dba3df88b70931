"""The device tensors are put on: its name, what is free on it, and how coarsely memory is counted there."""

import os
import re
from pathlib import Path
from typing import Any, NamedTuple

from glm_kvplan.errors import InputError, KvplanError
from glm_kvplan.units import MIB

# The caching allocator of torch: its block and segment sizes (c10/core/AllocatorConfig.h of torch 2.13).
CUDA_BLOCK = 512
CUDA_SMALL, CUDA_SMALL_SEGMENT = 1 * MIB, 2 * MIB
CUDA_LARGE, CUDA_LARGE_SEGMENT = 10 * MIB, 20 * MIB
CUDA_GRANULE = 2 * MIB
# Pages of anonymous memory: transparent huge pages round a large tensor up to 2 MiB at either end.
CPU_GRANULE = 2 * MIB


class MissingTorchError(KvplanError):
    """torch is not installed, and this command allocates with it."""


class Device(NamedTuple):
    """One place for tensors. `name` is what torch calls it: "cuda:0", "cpu" or "meta"."""

    name: str
    description: str

    @property
    def kind(self) -> str:
        return self.name.partition(":")[0]


def import_torch() -> Any:
    """The torch module. Raises MissingTorchError, which says what to install."""
    try:
        import torch
    except ImportError as error:
        raise MissingTorchError(f"this command needs torch ({error}); install it with: pip install torch") from None
    return torch


def find_device(text: str) -> Device:
    """`cuda`, `cuda:N`, `cpu`, `meta`, or `auto`: the GPU with the most free memory where there is one, else the CPU.

    `cuda` alone is the first GPU, as in torch. Raises InputError for anything else and for a GPU that is not there.
    """
    torch = import_torch()
    kind, colon, index = text.partition(":")
    if re.match(r"(?:cuda:)?(?:MIG|GPU)-", text):
        name = text.removeprefix("cuda:")[:60]
        raise InputError(
            f"--device {text[:60]}: torch takes no such name; set CUDA_VISIBLE_DEVICES={name}, --device cuda"
        )
    if kind in ("pinned", "cpu_pinned", "cuda_host"):
        raise InputError(f"--device {kind}: pinned host memory is not taken here; --device cpu takes pageable memory")
    if text == "auto":
        kind, index = ("cuda", str(_emptiest())) if torch.cuda.is_available() else ("cpu", "")
    elif kind not in ("cuda", "cpu", "meta") or (colon and (kind != "cuda" or not re.fullmatch("[0-9]{1,4}", index))):
        raise InputError(f"--device {text[:60]!r} is not known; use auto, cuda, cuda:N, cpu or meta")
    if kind == "meta":
        return Device("meta", "torch's meta device: shapes without memory")
    if kind == "cpu":
        return Device("cpu", "host memory")
    if not torch.cuda.is_available():
        raise InputError(f"--device {text}: torch {torch.__version__} finds no GPU; use --device cpu or meta")
    number, known = int(index or 0), torch.cuda.device_count()
    if number >= known:
        raise InputError(f"--device {text}: there are {known} GPUs here, counted from cuda:0")
    return Device(f"cuda:{number}", torch.cuda.get_device_name(number))


def _emptiest() -> int:
    """The GPU with the most free memory; the first of equal ones, and the first where none answers."""
    cuda = import_torch().cuda
    available = []
    for number in range(cuda.device_count()):
        try:
            available.append((int(cuda.mem_get_info(f"cuda:{number}")[0]), -number))
        except RuntimeError:  # another process has it for itself, or it has failed
            continue
    return -max(available)[1] if available else 0


def available_memory(device: Device) -> int | None:
    """Bytes that can be taken: the driver's free memory on a GPU, available memory (and the container's head-room)
    on the CPU, None on meta. Raises InputError where the operating system does not say."""
    if device.kind == "meta":
        return None
    if device.kind == "cuda":
        return int(import_torch().cuda.mem_get_info(device.name)[0])
    available = _host_memory()
    headroom = _container_headroom()
    return available if headroom is None else min(available, headroom)


def resident_memory() -> int | None:
    """Bytes of this process that the kernel backs with memory; None where there is no /proc."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")


def _host_memory() -> int:
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        raise InputError("--device cpu: this system does not tell its available memory; use --device meta") from None


def _container_headroom() -> int | None:
    """What a container's memory limit leaves (cgroup v2, then v1); None without a limit."""
    for limit, used in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ):
        try:
            return max(0, int(Path(limit).read_text(encoding="ascii")) - int(Path(used).read_text(encoding="ascii")))
        except (OSError, ValueError):
            continue
    return None
