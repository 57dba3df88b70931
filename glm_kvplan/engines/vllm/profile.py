"""What one vLLM release does differently for this model, as data: one TOML file a release in `profiles/`."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from functools import lru_cache
from pathlib import Path

from glm_kvplan.engines.by_name import engine_named
from glm_kvplan.engines.profile_file import installed_release, own_fields, release_fields, releases_in
from glm_kvplan.engines.protocol import Engine
from glm_kvplan.errors import InputError

PROFILES = Path(__file__).parent / "profiles"
NEWEST = "0.33.0"  # what is assumed where nobody names a release


@dataclass(frozen=True, slots=True)
class EngineProfile:
    """The places where releases differ. `sources` says where: a subject to file:line in that release's wheel."""

    release: str
    # Blocks are packed one after another and rounded to the strides of their pages; the block is as wide as the token
    # pages need; state groups are cut to fit it. Otherwise a layer has a region, and a state is padded to its page.
    blocks_packed: bool
    # The tail of a request is a ring that grows with the draft tokens; otherwise 4 slots whatever is drafted.
    tail_ring: bool
    # Where no --block-size is given, the unit of the block is what every backend takes; otherwise the first one's.
    unit_of_all_backends: bool
    # --mamba-ssm-cache-dtype reaches the KDA layers; otherwise the recurrent state is float32 whatever it says.
    state_dtype_flag: bool
    # FlashKDA exports one checkpoint of the state in a prefill: one state more a request with prefix caching.
    prefill_checkpoint: bool
    # The token cache is fp8 on SM100 unless asked otherwise.
    sm100_fp8_default: bool
    # --kv-cache-dtype float16 is taken beside the model's bfloat16 where a backend reads it; otherwise it is refused.
    float16_rows: bool
    # Cache dtypes in which FLASHMLA_SPARSE takes rows without a RoPE part on SM90, separated by blanks.
    nope_flashmla: str
    # Decode context parallelism keeps a whole tail on every rank; otherwise it is refused for the tail.
    tail_shared_by_dcp: bool
    # A GB10 gets the batch defaults of small cards.
    small_batches_on_gb10: bool
    # What --mamba-cache-mode takes, separated by blanks; empty where it is read and has no effect.
    cache_modes: str
    # The indexer's gather workspace holds pooled keys and a bounded multiple of the context; otherwise 40 times it.
    index_gather_bounded: bool
    sources: Mapping[str, str]

    @property
    def base_release(self) -> str:
        """The release itself, without the user's own profile file on top."""
        return self.release.partition(" ")[0]

    @property
    def engine(self) -> Engine:
        """The engine it is a release of."""
        return engine_named("vllm")

    def source(self, subject: str) -> str:
        """file:line at the release for a subject of `sources`; empty where this release has no such line.

        Raises KeyError for what is no subject: every release lists them all.
        """
        found = self.sources[subject]
        return f"{found} at {self.base_release}" if found else ""


def facts(profile: EngineProfile) -> dict[str, str]:
    """What users of a release meet first, under a heading each."""
    return {
        "blocks": "packed" if profile.blocks_packed else "a region a layer",
        "state dtype": "float32 or bfloat16" if profile.state_dtype_flag else "float32",
        "fp8 rows on B200": "by default" if profile.sm100_fp8_default else "where asked for",
    }


def releases() -> tuple[str, ...]:
    """The releases with a profile, oldest first."""
    return releases_in(PROFILES)


@lru_cache
def load_profile(name: str) -> EngineProfile:
    """The profile of a release ("0.33.0"), or of a user's own TOML file: `base = "0.33.0"`, then what differs.

    Raises InputError for a release before 0.30 (it does not know the model), an unknown one, or a bad file.
    """
    if name == "installed":
        found = installed_release("vllm")
        if found is None:
            raise InputError("--engine vllm-installed: no vllm is installed in this environment; name a release")
        return load_profile(found)
    if name in releases():
        known = [field.name for field in fields(EngineProfile)]
        return EngineProfile(**release_fields(PROFILES / f"{name}.toml", known))
    if name.endswith(".toml"):
        return EngineProfile(**own_fields(Path(name), "vllm", releases(), lambda base: asdict(load_profile(base))))
    ours = ", ".join(releases())
    if _before_first(name):
        raise InputError(
            f"vLLM {name[:40]} does not know this model; the first that does is {releases()[0]} (known: {ours})"
        )
    raise InputError(f"--engine vllm-{name[:80]}: no profile; known: {ours}, or a TOML file")


def _before_first(name: str) -> bool:
    parts = name.lstrip("v").split(".")
    return len(parts) >= 2 and all(part.isdecimal() for part in parts[:2]) and (int(parts[0]), int(parts[1])) < (0, 30)
