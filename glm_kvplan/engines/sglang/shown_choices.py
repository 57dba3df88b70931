"""Which resolved values are worth showing, in reading order, and the reason of those that no rule touched."""

from glm_kvplan.engines.sglang.resolve.arguments import Reason

_DEFAULT = Reason("the engine's default", "arg_groups/fields at 0.5.21")
_NO_LIMIT = Reason("no limit of its own: memory decides", "arg_groups/fields/schedule.py at 0.5.21")

SHOWN: tuple[str, ...] = (
    # parallel layout
    *("tp_size", "pp_size", "dp_size", "enable_dp_attention", "attn_dp_size", "attn_cp_size", "enable_prefill_cp"),
    *("cp_strategy", "dcp_size", "ep_size", "moe_dp_size", "moe_dense_tp_size", "moe_a2a_backend", "nnodes"),
    # token pool
    *("attention_backend", "kv_cache_dtype", "dsa_prefill_backend", "dsa_decode_backend", "kv_row_layout"),
    *("page_size", "context_length", "max_total_tokens", "enable_dsa_cache_layer_split", "enable_hisparse"),
    *("enable_unified_memory", "enable_page_major_kv_layout"),
    # state pool
    *("disable_radix_cache", "mamba_radix_cache_strategy", "disable_overlap_schedule", "mamba_track_interval"),
    *("linear_attn_backend", "linear_attn_decode_backend", "linear_attn_verify_backend", "mamba_conv_dtype"),
    *("mamba_ssm_dtype", "mamba_full_memory_ratio", "max_mamba_cache_size", "enable_linear_replayssm"),
    *("enable_linear_replayssm_spec", "linear_replayssm_cache_len", "enable_int8_mamba_checkpoint"),
    # speculation
    *("speculative_algorithm", "speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens"),
    *("speculative_adaptive", "max_draft_tokens", "speculative_draft_model_path"),
    # requests, batches and graphs
    *("max_running_requests", "chunked_prefill_size", "max_prefill_tokens", "decode_graph", "decode_graph_max_bs"),
    *("prefill_graph", "prefill_graph_max_bs"),
    # memory
    *("mem_fraction_static", "language_only", "mm_feature_transport", "mm_reserve_mib"),
    # roles
    *("disaggregation_mode", "disaggregation_decode_extra_slots", "disaggregation_decode_enable_radix_cache"),
    "enable_pd_role_switch",
    # host cache
    *("enable_hierarchical_cache", "hicache_ratio", "hicache_size", "hicache_mem_layout", "hicache_io_backend"),
    *("hicache_write_policy", "hicache_host_memory_mode", "hicache_host_memory_fraction", "hicache_storage_backend"),
)

PLAIN: dict[str, Reason] = {
    "tp_size": _DEFAULT,
    "pp_size": _DEFAULT,
    "dp_size": _DEFAULT,
    "disable_radix_cache": _DEFAULT,
    "disable_overlap_schedule": _DEFAULT,
    "linear_attn_backend": _DEFAULT,
    "mamba_full_memory_ratio": _DEFAULT,
    "max_mamba_cache_size": _NO_LIMIT,
    "max_total_tokens": _NO_LIMIT,
    "max_running_requests": _NO_LIMIT,
    "max_prefill_tokens": _DEFAULT,
}
