"""What one engine release does differently, as data: one TOML file a release in `profiles/`.

Nothing outside this package may ask which version runs; it asks the profile what that version does.
"""

import tomllib
from dataclasses import dataclass, fields
from functools import lru_cache
from pathlib import Path

from glm_kvplan.errors import InputError

PROFILES = Path(__file__).parent / "profiles"
BASELINE = "0.5.21"


@dataclass(frozen=True, slots=True)
class EngineProfile:
    """The places where releases differ for this model. Field by field the comments say what a value means."""

    release: str
    # KV page size in tokens on CUDA; times index_kpool in releases that page the pooled index.
    page_size: int
    page_size_times_index_kpool: bool
    # Index-K rows are stored (and charged) once per index_kpool tokens instead of once per token.
    index_rows_pooled: bool
    # The state pool also holds a slab for the draft (MTP) layer when speculation runs.
    draft_layer_in_state_pool: bool
    # PD prefill charges the verify snapshots although it never allocates them.
    prefill_snapshots_charged: bool
    # Least running requests a DP worker is left with after the division by the DP width.
    least_requests_per_worker: int
    # Replay rings exist for this model (--enable-linear-replayssm-spec).
    replay_rings: bool
    # KDA state is sharded over the whole TP group when context parallelism shares it.
    context_parallel_shards_state: bool


def releases() -> tuple[str, ...]:
    """The releases with a profile, oldest first."""
    return tuple(sorted(path.stem for path in PROFILES.glob("*.toml")))


@lru_cache
def load_profile(release: str = BASELINE) -> EngineProfile:
    """The profile of `release` ("0.5.21"). Raises InputError, naming the known releases, for any other."""
    if release not in releases():
        raise InputError(f"engine {release!r} has no profile; known releases: {', '.join(releases())}")
    data = tomllib.loads((PROFILES / f"{release}.toml").read_text(encoding="utf-8"))
    return EngineProfile(**{field.name: data[field.name] for field in fields(EngineProfile)})
