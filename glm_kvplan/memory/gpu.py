"""GPUs as data: what the engine's defaults read of a card."""

import re
import shutil
import subprocess
import tomllib
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Literal

from glm_kvplan.errors import InputError
from glm_kvplan.kept import kept

Vendor = Literal["cuda", "rocm"]

GPUS = Path(__file__).parent / "gpus.toml"
LARGEST_MIB = 1 << 24  # 16 TiB
UNKNOWN_CARD = "unknown card"  # the name of one that only stands in for a card that nobody told

_MAKERS = re.compile(r"nvidia|amd|instinct|tesla|[^a-z0-9]")
_QUERY = ("--query-gpu=name,memory.total,compute_cap", "--format=csv,noheader,nounits")


@dataclass(frozen=True)
class Gpu:
    """One card. `memory_mib` is the total the driver reports (nvidia-smi), or torch's where the driver gives none."""

    name: str
    memory_mib: int
    vendor: Vendor
    capability: tuple[int, int]  # CUDA compute capability; (9, 4) and the like on ROCm: gfx942
    integrated: bool  # memory is shared with the host (GB10)
    source: str
    gpus_per_host: int = 8  # of the usual host; asked about where layouts are sought

    def __hash__(self) -> int:
        """Of what tells cards apart: much is kept by card."""
        return hash(self.name)

    @kept
    def blackwell(self) -> bool:
        """Compute capability 10 or above, 12 included: one generation to the engine's defaults."""
        return self.vendor == "cuda" and self.capability[0] >= 10

    @kept
    def sm100(self) -> bool:
        """Compute capability 10 alone, the Blackwell of data centres: kernels are built for it that 12 has not."""
        return self.vendor == "cuda" and self.capability[0] == 10


@lru_cache
def known_gpus() -> dict[str, Gpu]:
    """Every card of the table by its short name, in the table's order."""
    return {key: gpu for key, (gpu, _) in _table().items()}


@lru_cache
def _table() -> dict[str, tuple[Gpu, frozenset[str]]]:
    """Short name: the card and all its spellings, squeezed."""
    table = {}
    for key, entry in tomllib.loads(GPUS.read_text(encoding="utf-8")).items():
        gpu = Gpu(
            name=entry["name"],
            memory_mib=entry["memory_mib"],
            vendor=entry["vendor"],
            capability=(entry["capability"][0], entry["capability"][1]),
            integrated=entry.get("integrated", False),
            source=entry["source"],
            gpus_per_host=entry.get("gpus_per_host", 8),
        )
        spellings = (key, entry["name"], *entry.get("aliases", ()))
        table[key] = (gpu, frozenset(_squeeze(spelling) for spelling in spellings))
    return table


def _squeeze(name: str) -> str:
    """Case, blanks, dashes and the maker do not count: "NVIDIA RTX PRO 6000" is "rtxpro6000"."""
    return _MAKERS.sub("", name.lower())


def _listed(name: str) -> Gpu | None:
    """The card of the table that is spelled `name`, if there is one."""
    squeezed = _squeeze(name)
    return next((gpu for gpu, spellings in _table().values() if squeezed in spellings), None)


def is_gpu(name: str) -> bool:
    """Whether a card of the table is spelled so."""
    return _listed(name) is not None


def cards_in(text: str) -> tuple[int, str] | None:
    """Several cards of the table in one word, `8xh200` or `h200x8`: how many, and the card."""
    found = re.fullmatch(r"(\d{1,4})\s*[xX*]\s*(.+)", text) or re.fullmatch(r"(.+?)\s*[xX*]\s*(\d{1,4})", text)
    if found is None:
        return None
    count, card = found.groups() if found[1].isdigit() else found.groups()[::-1]
    return (int(count), card) if is_gpu(card) else None


def find_gpu(name: str) -> Gpu:
    """The card called `name`: a known one, `NAME:MIB` with its memory replaced, or `local` (asks nvidia-smi).

    Raises InputError for an unknown name (the nearest are listed), a memory that is no number of MiB, and for
    `local` where no NVIDIA driver answers.
    """
    plain, colon, memory = name.partition(":")
    if not plain.strip():
        raise InputError(
            f"--gpu {name[:80]!r} names no card; leave it out (an H200 is assumed) or see `kvplan info gpus`"
        )
    gpu = local_gpu() if plain.strip().lower() == "local" else _named(plain)
    if not colon:
        return gpu
    if not re.fullmatch(r"[0-9]{1,9}", memory.strip()) or not 0 < int(memory) <= LARGEST_MIB:
        raise InputError(
            f"--gpu {name[:80]!r}: {memory[:60]!r} is not a memory in MiB; write for example {plain}:{gpu.memory_mib}"
        )
    return replace(gpu, memory_mib=int(memory), source=f"given: {memory.strip()} MiB")


def _named(name: str) -> Gpu:
    gpu = _listed(name)
    if gpu is not None:
        return gpu
    several = cards_in(name)
    if several is not None:
        count, card = several
        raise InputError(
            f"--gpu {name[:80]!r} is {count} cards: give --gpu {card}, and how many with the layout's flags "
            f"(--tp-size {count}) or kvplan advise --gpus {count}"
        )
    import difflib

    by_spelling = {spelling: gpu.name for gpu, spellings in _table().values() for spelling in spellings}
    near = difflib.get_close_matches(_squeeze(name)[:80], by_spelling, 6, 0.5)
    nearest = list(dict.fromkeys(by_spelling[spelling] for spelling in near))[:3]
    hint = f"; nearest: {', '.join(nearest)}" if nearest else ""
    raise InputError(f"--gpu {name[:80]!r} is not known{hint}; known: {', '.join(_table())} (or NAME:MIB, or local)")


def local_gpu() -> Gpu:
    """The cards of this machine as nvidia-smi lists them; the smallest memory counts, as in the engine.

    The engine reads every listed card, whatever CUDA_VISIBLE_DEVICES says (utils/common.py:802-837 at 0.5.23).
    Raises InputError when nvidia-smi is missing, fails, or lists nothing usable.
    """
    program = shutil.which("nvidia-smi")
    if program is None:
        raise InputError("--gpu local: nvidia-smi is not on this machine; name the card instead, such as --gpu h200")
    try:
        done = subprocess.run((program, *_QUERY), capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired, UnicodeDecodeError) as error:
        raise InputError(f"--gpu local: nvidia-smi does not answer ({type(error).__name__}); name the card") from None
    if done.returncode:
        reason = " ".join((done.stderr or done.stdout).split())[:120]
        raise InputError(f"--gpu local: nvidia-smi failed ({done.returncode}): {reason or 'no reason given'}")
    return gpu_of_listing(done.stdout)


def gpu_of_listing(listing: str) -> Gpu:
    """One Gpu from nvidia-smi's `name, memory.total, compute_cap` lines. Raises InputError if none is usable."""
    rows = [[cell.strip() for cell in line.rsplit(",", 2)] for line in listing.splitlines()]
    rows = [row for row in rows if len(row) == 3]
    if not rows:
        raise InputError("--gpu local: nvidia-smi lists no card; name the card instead, such as --gpu h200")
    name, _, capability = rows[0]
    known = _listed(name)
    memory = [int(float(row[1])) for row in rows if re.fullmatch(r"[0-9]{1,9}(\.[0-9]+)?", row[1])]
    version = re.fullmatch(r"([0-9]{1,3})\.([0-9]{1,3})", capability)
    if (version is None and known is None) or (not memory and known is None):
        raise InputError(f"--gpu local: nvidia-smi says {', '.join(rows[0])!r}; name the card as NAME:MIB instead")
    found = known or Gpu(name, 0, "cuda", (0, 0), False, "")
    return replace(
        found,
        name=name.removeprefix("NVIDIA ") if known is None else known.name,
        memory_mib=min(memory) if memory else found.memory_mib,
        capability=(int(version[1]), int(version[2])) if version else found.capability,
        source="nvidia-smi on this machine" if memory else found.source,
    )
