"""The engine's server arguments while they are being resolved: what the user gave, then what each rule decided."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, NamedTuple

from glm_kvplan.engines.flag import LARGEST, check_value
from glm_kvplan.engines.flag import Reason as Reason
from glm_kvplan.engines.sglang.deployment import KvLayout
from glm_kvplan.engines.sglang.flags import FLAG
from glm_kvplan.engines.sglang.profile import EngineProfile
from glm_kvplan.errors import InputError
from glm_kvplan.memory.gpu import Gpu
from glm_kvplan.model.geometry import Geometry


class Site(NamedTuple):
    """What the engine finds where it starts: the checkpoint, itself, the card and its SGLANG_* environment."""

    geometry: Geometry
    profile: EngineProfile
    gpu: Gpu
    environment: Mapping[str, str]


@dataclass(slots=True, kw_only=True)
class Arguments:
    """One launch in the engine's own names. The defaults are the engine's unresolved ones (0.5.20 to 0.5.23).

    Source: arg_groups/fields/*.py. `because` and `warnings` grow while the rules run; `given` never changes.
    """

    # parallel layout
    tp_size: int = 1
    pp_size: int = 1
    dp_size: int = 1
    enable_dp_attention: bool = False
    attn_dp_size: int = 1  # the attention-DP width in every release, whichever flag set it
    attn_cp_size: int = 1
    enable_prefill_cp: bool = False
    cp_strategy: str | None = None
    dcp_size: int = 1
    ep_size: int = 1
    moe_dp_size: int = 1
    moe_dense_tp_size: int | None = None
    moe_a2a_backend: str = "none"
    nnodes: int = 1
    enable_dp_lm_head: bool = False

    # token pool
    page_size: int | None = None
    kv_cache_dtype: str = "auto"
    kv_row_layout: KvLayout | None = None  # ours, not the engine's: the row layout of a patched build
    attention_backend: str | None = None
    prefill_attention_backend: str | None = None
    decode_attention_backend: str | None = None
    dsa_prefill_backend: str | None = None
    dsa_decode_backend: str | None = None
    max_total_tokens: int | None = None
    context_length: int | None = None
    enable_dsa_cache_layer_split: bool = False
    enable_kv_cache_sharding: bool = False
    enable_hisparse: bool = False
    enable_unified_memory: bool = False
    enable_page_major_kv_layout: bool = False
    prefill_only_disable_kv_cache: bool = False

    # state pool
    disable_radix_cache: bool = False
    disable_overlap_schedule: bool = False
    mamba_radix_cache_strategy: str = "auto"
    mamba_track_interval: int = 256
    mamba_ssm_dtype: str | None = None
    mamba_full_memory_ratio: float = 0.9
    max_mamba_cache_size: int | None = None
    linear_attn_backend: str = "triton"
    linear_attn_decode_backend: str | None = None
    linear_attn_prefill_backend: str | None = None
    linear_attn_verify_backend: str | None = None
    enable_linear_replayssm: bool = False
    enable_linear_replayssm_spec: bool = False
    linear_replayssm_cache_len: int = 16
    enable_int8_mamba_checkpoint: bool = False

    # requests, batches and graphs
    max_running_requests: int | None = None
    chunked_prefill_size: int | None = None
    max_prefill_tokens: int = 16384
    enable_mixed_chunk: bool = False
    enable_two_batch_overlap: bool = False
    enable_pdmux: bool = False
    disable_cuda_graph: bool = False
    disable_decode_cuda_graph: bool = False
    disable_prefill_cuda_graph: bool = False
    cuda_graph_backend_decode: str | None = None
    cuda_graph_backend_prefill: str | None = None
    cuda_graph_max_bs_decode: int | None = None
    cuda_graph_max_bs_prefill: int | None = None
    cuda_graph_bs_decode: Sequence[int] | None = None
    cuda_graph_bs_prefill: Sequence[int] | None = None
    cuda_graph_config: Mapping[str, Any] | None = None

    # memory
    mem_fraction_static: float | None = None
    language_only: bool = False
    language_model_only: bool = False
    enable_multimodal: bool | None = None
    mm_feature_transport: str | None = None
    keep_mm_feature_on_device: bool = False

    # speculation
    speculative_algorithm: str | None = None
    speculative_num_steps: int | None = None
    speculative_eagle_topk: int | None = None
    speculative_num_draft_tokens: int | None = None
    speculative_adaptive: bool = False
    speculative_adaptive_config: str | None = None
    speculative_draft_model_path: str | None = None
    speculative_dflash_block_size: int | None = None
    speculative_dspark_block_size: int | None = None
    enable_multi_layer_eagle: bool = False

    # roles
    disaggregation_mode: Literal["null", "prefill", "decode"] = "null"
    disaggregation_transfer_backend: str = "mooncake"
    disaggregation_decode_extra_slots: int | None = None
    disaggregation_decode_enable_radix_cache: bool = False
    disaggregation_decode_retraction_backup: str | None = None
    enable_pd_role_switch: bool = False

    # host cache
    enable_hierarchical_cache: bool = False
    hicache_ratio: float | None = None
    hicache_size: int = 0
    hicache_mem_layout: str = "page_first"
    hicache_io_backend: str = "kernel"
    hicache_write_policy: str = "write_through"
    hicache_host_memory_mode: str = "cache"
    hicache_host_memory_fraction: float | None = 0.8
    hicache_storage_backend: str | None = None

    # what the rules decide beside the flags
    decode_graph: str = "full"
    decode_graph_max_bs: int = 0
    prefill_graph: str = "disabled"
    prefill_graph_chosen: bool = False  # the user chose the prefill graph, one way or another
    prefill_graph_max_bs: int | None = None
    prefill_graph_max_bs_chosen: bool = False
    undivided_chunk_size: int = 0
    reserved_mib: float = 0.0
    layout: KvLayout = "bf16"
    replicas: int = 1
    linear_attn_tp_size: int = 1
    pipeline_partition: tuple[int, ...] | None = None
    mamba_conv_dtype: str = "bfloat16"
    state_dtype: str = "float32"
    skip_decode_lock: bool = False
    multimodal: bool = True
    mm_reserve_mib: int = 0
    max_draft_tokens: int | None = None

    given: Mapping[str, object] = field(default_factory=dict)
    because: dict[str, Reason] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)


_ARGUMENTS = frozenset(entry.name for entry in fields(Arguments))


def read_arguments(flags: Mapping[str, object]) -> Arguments:
    """The launch that `flags` (engine field name -> typed value; None is "not given") describes, still unresolved.

    Raises InputError for a name that is no flag of the memory model, a value of the wrong type or out of range.
    """
    given = {name: value for name, value in flags.items() if value is not None}
    for name, value in given.items():
        flag = FLAG.get(name)
        if flag is None or flag.role not in ("flag", "ours"):
            raise InputError(f"{name!r} is not a launch flag that touches memory; see `kvplan resolve --help`")
        check_value(flag, value)
    known: dict[str, Any] = {name: value for name, value in given.items() if name in _ARGUMENTS}
    return Arguments(given=given, **known)


def switched_on(environment: Mapping[str, str], name: str) -> bool:
    """An on/off switch of the environment, off when unset (environ.py:143-150 at 0.5.21). InputError otherwise."""
    text = environment.get(name)
    if text is None:
        return False
    word = text.lower()
    if word in ("true", "1", "yes", "y"):
        return True
    if word in ("false", "0", "no", "n"):
        return False
    raise InputError(f"{name}={text!r} is neither true nor false; write 1 or 0")


def megabytes(environment: Mapping[str, str], name: str, default: int) -> int:
    """A size in MiB from the environment. Raises InputError for text that is no whole number from 0."""
    text = environment.get(name)
    if text is None:
        return default
    if not text.strip().isdecimal() or int(text) > LARGEST:
        raise InputError(f"{name}={text!r} is not a size; write whole MiB, 0 or more")
    return int(text)
