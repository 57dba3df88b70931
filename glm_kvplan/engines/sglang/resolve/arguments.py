"""The engine's server arguments while they are being resolved: what the user gave, then what each rule decided."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from glm_kvplan.engines.flag import Reason as Reason
from glm_kvplan.engines.flag import check_value
from glm_kvplan.engines.sglang.environment import megabytes as megabytes
from glm_kvplan.engines.sglang.environment import switched_on as switched_on
from glm_kvplan.engines.sglang.flags import TABLE
from glm_kvplan.engines.sglang.profile import EngineProfile
from glm_kvplan.engines.sglang.start_flags import START_FLAGS
from glm_kvplan.errors import InputError
from glm_kvplan.memory.gpu import Gpu
from glm_kvplan.model.draft import DraftModel
from glm_kvplan.model.geometry import Geometry

KvLayout = Literal["bf16", "fp8_scaled", "fp8_raw", "fp8_padded"]


class Site(NamedTuple):
    """What the engine finds where it starts: the checkpoint, itself, the card and its SGLANG_* environment."""

    geometry: Geometry
    profile: EngineProfile
    gpu: Gpu
    environment: Mapping[str, str]
    quantization: str | None = None  # the method the checkpoint's config.json names; None where it is not known
    draft: DraftModel | str | None = None  # the draft model's config, or why there is none to read
    kernels: str | None = None  # the method as kernels are chosen by; UNREAD where config.json is not known


@dataclass(init=False, eq=False, repr=False)
class Arguments:
    """One launch in the engine's own names, while the rules run: a draft that ends as the Deployment.

    What a flag is before any rule stands in the table of flags. `because` and `warnings` grow; `given` never changes.
    """

    # parallel layout
    tp_size: int
    pp_size: int
    dp_size: int
    enable_dp_attention: bool
    attn_dp_size: int  # the attention-DP width in every release, whichever flag set it
    attn_cp_size: int
    enable_prefill_cp: bool
    cp_strategy: str | None
    dcp_size: int
    ep_size: int
    moe_dp_size: int
    moe_dense_tp_size: int | None
    moe_a2a_backend: str
    moe_runner_backend: str
    enable_waterfill: bool
    enable_dp_lm_head: bool
    nnodes: int
    replicas: int
    linear_attn_tp_size: int
    pipeline_partition: tuple[int, ...] | None

    # token pool
    attention_backend: str | None
    prefill_attention_backend: str | None
    decode_attention_backend: str | None
    kv_cache_dtype: str
    dsa_prefill_backend: str | None
    dsa_decode_backend: str | None
    kv_row_layout: KvLayout | None  # ours, not the engine's: the row layout of a patched build
    kv_layout: KvLayout
    page_size: int | None
    context_length: int | None
    max_total_tokens: int | None
    enable_dsa_cache_layer_split: bool
    enable_kv_cache_sharding: bool
    enable_hisparse: bool
    hisparse_config: str | None
    enable_unified_memory: bool
    enable_page_major_kv_layout: bool
    prefill_only_disable_kv_cache: bool

    # state pool
    disable_radix_cache: bool
    mamba_radix_cache_strategy: str
    disable_overlap_schedule: bool
    mamba_track_interval: int
    linear_attn_backend: str
    linear_attn_decode_backend: str | None
    linear_attn_prefill_backend: str | None
    linear_attn_verify_backend: str | None
    mamba_conv_dtype: str
    mamba_ssm_dtype: str | None
    mamba_full_memory_ratio: float
    max_mamba_cache_size: int | None
    skip_decode_lock: bool
    enable_linear_replayssm: bool
    enable_linear_replayssm_spec: bool
    linear_replayssm_cache_len: int
    enable_int8_mamba_checkpoint: bool
    int8_mamba_ckpt_size: int | None

    # speculation
    speculative_algorithm: str | None
    speculative_num_steps: int | None
    speculative_eagle_topk: int | None
    speculative_num_draft_tokens: int | None
    speculative_adaptive: bool
    speculative_adaptive_config: str | None
    max_draft_tokens: int | None
    speculative_draft_model_path: str | None
    draft_config: str | None  # ours, not the engine's: where the draft model's config.json is read
    draft_model: DraftModel | None  # a draft model of its own, as its config.json has it
    draft_kv_dtype: str | None  # of the cache of such a model, as torch stores it
    speculative_draft_model_quantization: str | None
    speculative_draft_kv_cache_dtype: str | None
    speculative_draft_attention_backend: str | None
    speculative_draft_window_size: int | None
    speculative_dflash_block_size: int | None
    speculative_dspark_block_size: int | None
    enable_multi_layer_eagle: bool

    # requests, batches and graphs
    max_running_requests: int | None
    chunked_prefill_size: int | None
    max_prefill_tokens: int
    decode_graph: str
    decode_graph_max_bs: int
    prefill_graph: str
    prefill_graph_max_bs: int | None
    enable_mixed_chunk: bool
    enable_two_batch_overlap: bool
    enable_pdmux: bool
    cuda_graph_max_bs_decode: int | None
    cuda_graph_max_bs_prefill: int | None
    cuda_graph_bs_decode: Sequence[int] | None
    cuda_graph_bs_prefill: Sequence[int] | None
    cuda_graph_backend_decode: str | None
    cuda_graph_backend_prefill: str | None
    cuda_graph_config: Mapping[str, Any] | None
    disable_cuda_graph: bool
    disable_decode_cuda_graph: bool
    disable_prefill_cuda_graph: bool

    # memory
    mem_fraction_static: float | None
    quantization: str | None
    cpu_offload_gb: int
    enable_memory_saver: bool
    language_only: bool
    language_model_only: bool
    enable_multimodal: bool | None
    multimodal: bool
    mm_enable_dp_encoder: bool | None
    mm_feature_transport: str | None
    mm_reserve_mib: int
    keep_mm_feature_on_device: bool
    json_model_override_args: Mapping[str, Any] | None
    device: str | None

    # roles
    disaggregation_mode: Literal["null", "prefill", "decode"]
    disaggregation_transfer_backend: str
    disaggregation_decode_extra_slots: int | None
    disaggregation_decode_enable_radix_cache: bool
    disaggregation_decode_retraction_backup: str | None
    enable_pd_role_switch: bool

    # host cache
    enable_hierarchical_cache: bool
    hicache_ratio: float | None
    hicache_size: int
    hicache_mem_layout: str
    hicache_io_backend: str
    hicache_write_policy: str
    hicache_host_memory_mode: str
    hicache_host_memory_fraction: float | None
    hicache_storage_backend: str | None

    # what one rule leaves for a later one
    prefill_graph_chosen: bool  # the user chose the prefill graph, one way or another
    prefill_graph_max_bs_chosen: bool
    prefill_graph_bs_chosen: bool
    undivided_chunk_size: int
    reserved_mib: float
    kernels_missing: bool  # the chosen sparse kernels are known not to run on the card

    given: Mapping[str, object]
    because: dict[str, Reason]
    warnings: list[str]

    def __init__(self, given: Mapping[str, object]) -> None:
        values = DEFAULTS.copy()
        values.update(given)
        values.update(given=given, because={}, warnings=[])
        self.__dict__ = values


DEFAULTS: dict[str, Any] = {
    **{flag.name: flag.default for flag in TABLE if flag.role in ("flag", "ours", "decided")},
    **dict.fromkeys(("prefill_graph_chosen", "prefill_graph_max_bs_chosen", "prefill_graph_bs_chosen"), False),
    **{"undivided_chunk_size": 0, "reserved_mib": 0.0, "kernels_missing": False},
}
_ACCEPTED = {flag.name: flag for flag in (*TABLE, *START_FLAGS) if flag.role in ("flag", "ours", "checked")}


def read_arguments(flags: Mapping[str, object]) -> Arguments:
    """The launch that `flags` (engine field name -> typed value; None is "not given") describes, still unresolved.

    Raises InputError for a name that is no flag of the memory model, a value of the wrong type or out of range.
    """
    given = {}
    for name, value in flags.items():
        if value is None:
            continue
        flag = _ACCEPTED.get(name)
        if flag is None:
            raise InputError(f"{name!r} is not a launch flag that touches memory; see `kvplan resolve --help`")
        check_value(flag, value)
        given[name] = value
    return Arguments(given)
