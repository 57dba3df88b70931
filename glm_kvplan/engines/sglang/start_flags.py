"""SGLang's launch flags that move no memory but can keep a server from starting: read for the engine's own checks.

Kinds and defaults are the engine's (arg_groups/fields/*.py at 0.5.20 to 0.5.23); a test holds them against it. What
the checks do with them stands in resolve/start_checks.
"""

from collections.abc import Mapping
from typing import cast

from glm_kvplan.engines.flag import LARGEST, NOTHING, Flag, Kind, flag

# name, kind and default; "-" is None. `present` keeps that a secret was given, not the secret.
_ROWS = """
admin_api_key present -
api_key present -
asr_max_buffer_seconds int 60
asr_max_concurrent_sessions int 32
base_gpu_id int 0
cuda_graph_prefill_max_context count -
dcp_comm_backend str -
dcp_replicate_q_proj switch -
decoupled_spec_role str null
deepep_mode str auto
default_chat_template_kwargs data -
detokenizer_worker_num int 1
disable_cuda_graph_padding flag false
disable_fast_image_processor flag false
disaggregation_decode_allocation_policy str early
disaggregation_decode_enable_offload_kvcache flag false
disaggregation_decode_host_receive_threshold float -
dllm_algorithm str -
dwdp_size int 1
elastic_ep_backend str -
elastic_ep_initial_size int -
elastic_ep_join_mode str -
elastic_ep_join_rank_offset int 0
elastic_ep_scale_timeout float 600
enable_amd_monokernel flag false
enable_cp_decode_attn_tp flag false
enable_custom_logit_processor flag false
enable_deepseek_v4_fp4_indexer flag false
enable_deterministic_inference flag false
enable_dynamic_batch_tokenizer flag false
enable_dynamic_chunking flag false
enable_elastic_expert_backup flag false
enable_encoder_swa_bounded_replay flag false
enable_eplb flag false
enable_http2 flag false
enable_http_worker_reuseport flag false
enable_layernorm_sp flag false
enable_linker_mla_dedup flag false
enable_lmcache flag false
enable_lora flag -
enable_lora_overlap_loading flag -
enable_mis flag false
enable_nvidia_megakernel flag false
enable_prefix_mm_cache flag false
enable_priority_scheduling flag false
enable_quant_communications flag false
enable_response_store flag false
enable_return_aux_hidden_states flag false
enable_single_batch_overlap flag false
enable_ssl_refresh flag false
enable_streaming_session flag false
enable_tokenizer_batch_encode flag false
enable_torch_compile flag false
enable_tp_lm_head_all_to_all switch -
enable_unified_cache_external_linker flag false
enable_watermark flag false
encoder_only flag false
enforce_shared_experts_fusion flag false
ep_dispatch_algorithm str -
ep_num_redundant_experts int 0
export_metrics_to_file flag false
export_metrics_to_file_dir str -
flashinfer_a2a_dispatch_type str -
forward_hooks data -
gc_threshold words -
generation_tokens_buckets words -
gpu_id_step int 1
grpc_mode flag false
grpc_port int -
grpc_response_timeout_secs int 300
http2_initial_connection_window_size int 1048576
http2_max_concurrent_streams int 200
image_processor_backend str auto
init_expert_location str trivial
is_embedding flag false
kv_canary str none
kv_canary_sweep_interval int 0
kv_events_config str -
limit_mm_data_per_request data -
load_balance_method str auto
load_format str auto
load_publish_endpoint str -
log_level str info
lora_backend str csgmv
lora_drain_wait_threshold float 0.0
lora_paths words -
lora_target_modules words -
mamba_backend str triton
max_ep_size int -
max_loaded_loras int -
max_lora_rank int -
max_loras_per_batch int 8
min_free_slots_delay int -
mm_io_worker_num int 0
mm_preprocess_cache_size_mb int -
mm_processor_worker_num int 0
model_impl str auto
node_rank int 0
optimistic_prefill_attempts int 0
port int 30000
pp_max_micro_batch_size int -
prefill_decode_interval int -
prefill_decode_interval_min_bs int 0
prefill_kv_cache_dequant_dtype str auto
prompt_tokens_buckets words -
radix_cache_backend str -
radix_eviction_policy str lru
radix_eviction_policy_config data -
retraction_policy str length
return_aux_hidden_state_layer_ids words -
rl_on_policy_target str -
sampling_backend str -
sampling_mask_max_tokens int 4096
schedule_conservativeness float 1.0
schedule_policy str fcfs
served_model_name str -
shared_experts_tp_size int -
sidecar str -
sidecar_args data -
smg_grpc_mode flag false
speculative_accept_threshold_acc float 1.0
speculative_accept_threshold_single float 1.0
speculative_draft_sink_size int -
speculative_moe_a2a_backend str -
speculative_moe_runner_backend str -
speculative_use_block_verification flag false
speculative_use_rejection_sampling flag false
ssl_ca_certs str -
ssl_certfile str -
ssl_keyfile str -
ssl_keyfile_password present -
swa_full_tokens_ratio float -
swa_prefix_tails int -
tokenizer_worker_num int 1
unified_cache_external_linker_backend str mooncake
use_ray flag false
watermark_config str -
"""


def _default(kind: str, text: str) -> object:
    if text == "-":
        return None
    if kind == "flag":
        return text == "true"
    return int(text) if kind == "int" else float(text) if kind == "float" else text


def _row(line: str) -> Flag:
    name, kind, default = line.split()
    row = flag(
        name,
        cast(Kind, kind),
        _default(kind, default),
        "moves no memory; read for the engine's start-up checks",
        least=-LARGEST,
        most=LARGEST,
        role="checked",
        moves=NOTHING,
        printed="",
        group="Start-up checks",
    )
    return row._replace(negative=(f"--no-{row.options[0][2:]}",)) if kind == "switch" else row


START_FLAGS: tuple[Flag, ...] = tuple(map(_row, _ROWS.split("\n")[1:-1]))
START_FLAG: Mapping[str, Flag] = {row.name: row for row in START_FLAGS}
