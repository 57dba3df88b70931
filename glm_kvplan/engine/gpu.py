"""GPUs as data: what the engine's defaults read of a card."""

import tomllib
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from glm_kvplan.errors import InputError

GPUS = Path(__file__).parent / "gpus.toml"


@dataclass(frozen=True, slots=True)
class Gpu:
    """One card. `memory_mib` is the total the driver reports (nvidia-smi), or torch's where the driver gives none."""

    name: str
    memory_mib: int
    vendor: str  # "cuda" or "rocm"
    capability: tuple[int, int]  # CUDA compute capability; (9, 4) and the like on ROCm: gfx942
    integrated: bool  # memory is shared with the host (GB10)
    source: str


@lru_cache
def _table() -> dict[str, Any]:
    return tomllib.loads(GPUS.read_text(encoding="utf-8"))


def find_gpu(name: str) -> Gpu:
    """The card called `name` (case does not count). Raises InputError for an unknown name."""
    for key, entry in _table().items():
        if name.lower() in (key, *entry.get("aliases", ())):
            return Gpu(
                name=entry["name"],
                memory_mib=entry["memory_mib"],
                vendor=entry["vendor"],
                capability=tuple(entry["capability"]),
                integrated=entry.get("integrated", False),
                source=entry["source"],
            )
    raise InputError(f"--gpu {name!r} is not known; known: {', '.join(_table())}")
