"""What one engine release does differently, as data: one TOML file a release in `profiles/`.

Nothing outside this package may ask which version runs; it asks the profile what that version does.
"""

from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from glm_kvplan.engines.by_name import engine_named
from glm_kvplan.engines.profile_file import installed_release, own_fields, release_fields, releases_in
from glm_kvplan.engines.protocol import Engine
from glm_kvplan.errors import InputError
from glm_kvplan.model.geometry import Geometry

PROFILES = Path(__file__).parent / "profiles"
BASELINE = "0.5.21"


class EngineProfile(NamedTuple):
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
    # HiCache keeps the DSA index in a host pool of its own.
    host_index_pool: bool
    # The host copy of a latent row is as wide as the device row; otherwise it has no room for the scales (512 of 528).
    host_row_is_device_row: bool
    # The host pool of a draft model of its own has as many pages as the target's; otherwise it is sized by a quotient,
    # in floats, and adds a page of its own.
    host_draft_has_kv_pages: bool
    # Without --hicache-ratio and --hicache-size the engine lowers the default ratio until the host pools fit.
    hicache_automatic_ratio: bool
    # Available host memory is bounded by the container's (cgroup) limit, not the whole machine's alone.
    hicache_reads_cgroup: bool
    # --hicache-mem-layout page_first_kv_split starts up for this model (no CUDA transfer exists for it anywhere).
    hicache_kv_split_starts: bool
    # The pooled indexer scores its prefill logits in row chunks that fit a part of the free memory, not all at once.
    pooled_logits_bounded: bool
    # --attn-dp-size exists, and --dp-size N with --enable-dp-attention is rewritten to it.
    attention_dp_size_flag: bool
    # --dcp-size above 1 is refused for a pooled index (it is neither refused nor wired before).
    decode_context_parallel_refused: bool
    # Prefill CP takes the DFLASH draft, and with it the PD prefill role.
    context_parallel_dflash: bool
    # Prefill CP over the whole TP group captures prefill graphs.
    context_parallel_prefill_graph: bool
    # FP8 rows with both sparse backends tilelang on CUDA are raw rows; refused otherwise.
    tilelang_fp8_raw: bool
    # The flashmla_sparse_q8 prefill kernel reads BF16 rows, and no FP8 rows without a RoPE part; before, FP8 rows only.
    q8_reads_bf16: bool
    # Speculation runs with pipeline stages (PD prefill, or SGLANG_ENABLE_PP_SPEC).
    pipeline_speculation: bool
    # The tc_piecewise CUDA graph backend exists.
    piecewise_graphs: bool
    # Prefill graphs are on by default for this model on CUDA; the memory fraction reserves 1536 MiB for them.
    prefill_graph_default: bool
    # Prefill chunk and largest prefill graph that a user's breakable prefill graphs bring along; 0: none.
    breakable_prefill_size: int
    # Largest prefill graph by default, in tokens, and whether the prefill chunk caps it.
    prefill_graph_max_bs: int
    prefill_graph_capped_by_chunk: bool
    # The default largest decode graph is no larger than a user's max_running_requests.
    graph_batch_capped_by_requests: bool
    # Speculative algorithms that a PD decode server takes beside its radix cache, separated by blanks.
    decode_radix_speculation: str
    # A block draft's KV heads are charged by the ranks of one attention group, not by all of tensor parallelism.
    draft_heads_by_attention_tp: bool
    # DFLASH runs with attention DP (given --enable-dp-lm-head).
    dflash_with_attention_dp: bool
    # --enable-pd-role-switch runs with attention DP and plain data parallelism.
    role_switch_with_data_parallel: bool
    # The --disaggregation-decode-host-receive-threshold at which a decode server receives nothing into host memory.
    host_receive_off_at: int
    # HiCache's buffer_only mode turns write_back into write_through; refused otherwise.
    hicache_buffer_write_back: bool
    # Start-up checks (resolve/start_checks, by name) that the release does not make, separated by blanks.
    absent_checks: str
    # Bytes of a scaled FP8 row in one layer; None: from the checkpoint's shape. Only patched builds set it.
    scaled_row_bytes: int | None = None

    @property
    def base_release(self) -> str:
        """The release itself, without the user's own profile file on top."""
        return self.release.partition(" ")[0]

    def otherwise(self, **fields: bool | str) -> str:
        """What to say where a patched build would not refuse: the profile file that stands for it."""
        told = ", ".join(
            f"{name} = {str(value).lower() if isinstance(value, bool) else repr(value)}"
            for name, value in fields.items()
        )
        return f'for a build that takes it: --engine FILE.toml with base = "{self.base_release}", {told}'

    @property
    def engine(self) -> Engine:
        """The engine it is a release of."""
        return engine_named("sglang")


def facts(profile: EngineProfile) -> dict[str, str]:
    """What users of a release meet first, under a heading each."""
    return {
        "page": str(profile.page_size) + (" x index_kpool" if profile.page_size_times_index_kpool else ""),
        "index B/token/layer": "one key per index_kpool tokens" if profile.index_rows_pooled else "one key per token",
        "state layers with MTP": "KDA and the draft layer" if profile.draft_layer_in_state_pool else "KDA",
    }


def releases() -> tuple[str, ...]:
    """The releases with a profile, oldest first."""
    return releases_in(PROFILES)


@lru_cache
def load_profile(engine: str = BASELINE) -> EngineProfile:
    """The profile of a release ("0.5.21"), of a user's own file, or of the sglang found here ("installed").

    A file is TOML: `base = "0.5.22"`, then the fields that differ. Raises InputError for anything else.
    """
    if engine == "installed":
        found = installed_release("sglang")
        if found is None:
            raise InputError("--engine installed: no sglang is installed in this environment; name a release")
        return load_profile(found)
    if engine in releases():
        return EngineProfile(**release_fields(PROFILES / f"{engine}.toml", EngineProfile._fields))
    path = Path(engine)
    if path.suffix == ".toml" or _is_file(path):
        above_zero = ("page_size", "scaled_row_bytes")
        fields = own_fields(path, "sglang", releases(), lambda base: load_profile(base)._asdict(), above_zero)
        return EngineProfile(**fields)
    raise InputError(
        f"--engine {engine[:80]!r} has no profile; known: {', '.join(releases())}, installed, or a TOML file"
    )


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name no file can have
        return False


def page_size(geometry: Geometry, profile: EngineProfile) -> int:
    """The KV page of a release on CUDA, in tokens; the engine sets it whatever --page-size says.

    Source: arg_groups/model_overrides/deepseek_v2.py:137 at 0.5.21, :162-173 at 0.5.23.
    """
    return profile.page_size * (geometry.index_kpool if profile.page_size_times_index_kpool else 1)
