"""The table of SGLang's launch flags that touch memory: everything true of a flag stands in its row.

Names, spellings, accepted values and defaults are the engine's own in releases 0.5.20 to 0.5.23
(arg_groups/fields/*.py). Rows stand in the order in which resolved values are shown.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache

from glm_kvplan.engines.flag import BOTH, NOTHING, RANKS, WEIGHTS, Flag, Reason, flag, narrowed, option_of
from glm_kvplan.engines.sglang import flag_choices as words

_DEFAULT = Reason("the engine's default", "arg_groups/fields at 0.5.23")
_NO_LIMIT = Reason("no limit of its own: memory decides", "arg_groups/fields/schedule.py at 0.5.23")
_ON_THE_HOST = "weights that are not on the GPU are not taken off the estimate: give --weights-gib"


def _panel(group: str, rows: tuple[Flag, ...]) -> tuple[Flag, ...]:
    return tuple(row._replace(group=group) for row in rows)


def _beside(help: str, names: str, since: str = "", unplanned: str = "") -> tuple[Flag, ...]:
    row = flag("", "str", None, help, role="beside", moves=NOTHING, printed="", since=since, unplanned=unplanned)
    return tuple(row._replace(name=name, options=(option_of(name),)) for name in names.split())


# A flag: name, kind, default, what it does; then its other spellings and what else is true of it.
# fmt: off
_PARALLEL = (
    flag("tp_size", "int", 1, "GPUs of one engine; state per GPU shrinks with it, token rows do not",
         "--tp", "--tensor-parallel-size", most=RANKS, moves=BOTH, shown=True, reason=_DEFAULT),
    flag("pp_size", "int", 1, "pipeline stages; each holds its own layers' pools",
         "--pipeline-parallel-size", most=RANKS, moves=BOTH, shown=True, reason=_DEFAULT),
    flag("dp_size", "int", 1, "copies of the engine, or attention groups with --enable-dp-attention",
         "--dp", "--data-parallel-size", most=RANKS, moves=BOTH, shown=True, reason=_DEFAULT,
         becomes="attn_dp_size replicas"),
    flag("enable_dp_attention", "flag", False, "split attention into --dp-size groups; each holds its own requests",
         moves=BOTH, shown=True, becomes="attn_dp_size"),
    flag("attn_dp_size", "int", 1, "attention groups inside the TP group (0.5.22 on)",
         "--attention-data-parallel-size", most=RANKS, since="0.5.22", moves=BOTH, shown=True),
    flag("attn_cp_size", "int", 1, "ranks that share one prompt's prefill",
         "--attention-context-parallel-size", most=RANKS, moves=BOTH, shown=True),
    flag("enable_prefill_cp", "flag", False, "share a prompt's prefill over ranks; token rows are replicated",
         moves=BOTH, shown=True, becomes="attn_cp_size"),
    flag("cp_strategy", "str", None, "how prefill CP cuts a prompt",
         choices="zigzag interleave", moves=BOTH, shown=True, becomes="attn_cp_size moe_a2a_backend"),
    flag("dcp_size", "int", 1, "decode context parallelism; refused or unsupported here",
         "--decode-context-parallel-size", most=RANKS, shown=True, becomes="prefill_graph"),
    flag("ep_size", "int", 1, "ranks the experts are spread over; weights only",
         "--expert-parallel-size", "--ep", most=RANKS, moves=WEIGHTS, shown=True),
    flag("moe_dp_size", "int", 1, "copies of the experts inside the TP group",
         "--moe-data-parallel-size", most=RANKS, moves=WEIGHTS, shown=True),
    flag("moe_dense_tp_size", "int", None, "TP width of the dense MLP layers; weights only",
         most=RANKS, moves=WEIGHTS, shown=True),
    flag("moe_a2a_backend", "str", "none", "expert exchange; deepep reserves 2 GiB more",
         choices=words.A2A, moves=BOTH, shown=True),
    flag("moe_runner_backend", "str", "auto", "expert kernels; weights only: deep_gemm keeps more scales",
         choices=words.RUNNERS, moves=WEIGHTS),
    flag("enable_waterfill", "flag", False, "balance shared experts over ranks; brings deepep along", moves=WEIGHTS),
    flag("enable_dp_lm_head", "flag", False, "split the output head inside attention groups; weights only",
         moves=WEIGHTS),
    flag("nnodes", "int", 1, "hosts; sets how many ranks share one host's memory", most=RANKS, shown=True),
    flag("replicas", "int", 1, "plain data parallelism: whole copies of the engine", role="decided"),
    flag("linear_attn_tp_size", "int", 1, "ranks that share one KDA state", role="decided", moves=BOTH),
    flag("pipeline_partition", "ints", None, "layers of each pipeline stage (SGLANG_PP_LAYER_PARTITION)",
         role="decided", moves=BOTH),
)
_TOKENS = (
    flag("attention_backend", "str", None, "attention kernels; dsa when left out",
         choices=words.ATTENTION, shown=True, becomes="mem_fraction_static prefill_graph"),
    flag("prefill_attention_backend", "str", None, "attention kernels of prefill alone",
         choices=words.ATTENTION, moves=NOTHING),
    flag("decode_attention_backend", "str", None, "attention kernels of decode alone",
         choices=words.ATTENTION, moves=NOTHING),
    flag("kv_cache_dtype", "str", "auto", "bytes of a token row: bfloat16 1024, fp8_e4m3 512 or 528 a layer",
         choices=words.KV_DTYPE, shown=True, of_card=True),
    flag("dsa_prefill_backend", "str", None, "sparse prefill kernel; trtllm makes FP8 rows raw (512 bytes)",
         choices=words.DSA_PREFILL, shown=True, of_card=True),
    flag("dsa_decode_backend", "str", None, "sparse decode kernel; trtllm makes FP8 rows raw (512 bytes)",
         choices=words.DSA_DECODE, shown=True, of_card=True),
    flag("kv_row_layout", "str", None, "token rows of a patched build",
         choices="bf16 fp8_scaled fp8_raw fp8_padded", role="ours", shown=True, resolved="kv_layout",
         becomes="kv_layout"),
    flag("kv_layout", "str", "bf16", "what a token row holds",
         choices="bf16 fp8_scaled fp8_raw fp8_padded", role="decided"),
    flag("page_size", "int", None, "tokens a page; the engine overrides it for this model",
         least=0, printed="fact", shown=True),
    flag("context_length", "count", None, "longest request; 4 bytes a token in each request's table row", shown=True),
    flag("max_total_tokens", "count", None, "cap of the token pool, per GPU", shown=True, reason=_NO_LIMIT),
    flag("enable_dsa_cache_layer_split", "flag", False, "spread layers' caches over CP ranks; not for this model",
         shown=True, moves=NOTHING),
    flag("enable_kv_cache_sharding", "flag", False, "shard token rows over ranks; refused for this model (0.5.22 on)",
         since="0.5.22", moves=NOTHING),
    flag("enable_hisparse", "flag", False, "keep cold token rows in host memory; not wired for this model",
         shown=True, becomes="dsa_prefill_backend dsa_decode_backend"),
    flag("hisparse_config", "str", None, "settings of --enable-hisparse",
         "--hierarchical-sparse-attention-extra-config", moves=NOTHING, under="enable_hisparse",
         unread="the engine wires no HiSparse pool for this model, so its settings size nothing"),
    flag("enable_unified_memory", "flag", False, "one buffer for tokens and state; refused for this model",
         shown=True, moves=NOTHING),
    flag("enable_page_major_kv_layout", "flag", False, "page-major rows; needs --enable-unified-memory",
         shown=True, moves=NOTHING),
    flag("prefill_only_disable_kv_cache", "flag", False, "no token pool; for embedding models", moves=NOTHING),
)
_STATE = (
    flag("disable_radix_cache", "flag", False, "no prefix cache; one slot a request", shown=True, reason=_DEFAULT),
    flag("mamba_radix_cache_strategy", "str", "auto", "slots a request: extra_buffer 5, lazy 4, no_buffer 3",
         choices="auto no_buffer extra_buffer extra_buffer_lazy", shown=True),
    flag("disable_overlap_schedule", "flag", False, "no CPU/GPU overlap; one tracking slot fewer a request",
         shown=True, reason=_DEFAULT),
    flag("mamba_track_interval", "int", 256, "tokens between tracked states; a multiple of the page",
         shown=True, moves=NOTHING),
    flag("linear_attn_backend", "str", "triton", "KDA kernels; others than triton need the radix cache off",
         choices=words.KDA, shown=True, reason=_DEFAULT),
    flag("linear_attn_decode_backend", "str", None, "KDA kernels of decode alone",
         choices=words.KDA, shown=True, moves=NOTHING),
    flag("linear_attn_prefill_backend", "str", None, "KDA kernels of prefill alone", choices=words.KDA, moves=NOTHING),
    flag("linear_attn_verify_backend", "str", None, "KDA kernels of draft verification",
         choices=words.KDA + " nv_cutedsl", shown=True, moves=NOTHING),
    flag("mamba_conv_dtype", "str", "bfloat16", "convolution window (SGLANG_MAMBA_CONV_DTYPE)",
         role="decided", shown=True),
    flag("mamba_ssm_dtype", "str", None, "recurrent state; bfloat16 halves a slot",
         choices="float32 bfloat16 float16", shown=True),
    flag("mamba_full_memory_ratio", "float", 0.9, "state memory over token memory when slots are not given (0.9)",
         shown=True, reason=_DEFAULT),
    flag("max_mamba_cache_size", "int", None, "state slots, over all attention groups", shown=True, reason=_NO_LIMIT),
    flag("skip_decode_lock", "flag", False, "one state slot fewer a request (SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK)",
         role="decided"),
    flag("enable_linear_replayssm", "flag", False, "replay rings for decode; refused for this model", shown=True),
    flag("enable_linear_replayssm_spec", "flag", False, "a ring per slot instead of verify snapshots (0.5.21 on)",
         shown=True),
    flag("linear_replayssm_cache_len", "int", 16, "tokens in a replay ring (16)", shown=True),
    flag("enable_int8_mamba_checkpoint", "flag", False, "a second, int8 pool of states; never charged to the budget",
         shown=True, unplanned="its pool (two slots a state slot, or --int8-mamba-ckpt-size) is not planned"),
    flag("int8_mamba_ckpt_size", "int", None, "slots of the int8 pool (twice the state slots)",
         under="enable_int8_mamba_checkpoint", unplanned="the int8 checkpoint pool is not planned"),
)
_SPECULATION = (
    flag("speculative_algorithm", "str", None, "EAGLE or NEXTN: the checkpoint's own draft layer",
         moves=BOTH, shown=True),
    flag("speculative_num_steps", "int", None, "draft steps (3)", least=0, shown=True, together="drafts"),
    flag("speculative_eagle_topk", "int", None, "branches a step; 1 for this model", shown=True, together="drafts"),
    flag("speculative_num_draft_tokens", "int", None, "tokens verified at once; a state snapshot each, per request",
         shown=True, together="drafts"),
    flag("speculative_adaptive", "flag", False, "vary the steps; allocates for the largest candidate",
         shown=True, becomes="max_draft_tokens"),
    flag("speculative_adaptive_config", "str", None, "candidates of --speculative-adaptive",
         becomes="max_draft_tokens"),
    flag("max_draft_tokens", "int", None, "the most tokens one verification holds", role="decided", shown=True),
    flag("speculative_draft_model_path", "str", None, "another draft checkpoint",
         "--speculative-draft-model", moves=BOTH, shown=True, names_file=True),
    flag("draft_config", "str", None, "config.json of the draft model: a file, a directory or a Hub id",
         role="ours", becomes="draft_model", names_file=True),
    flag("draft_model", "data", None, "what the draft model's config.json says", role="decided", moves=BOTH),
    flag("draft_kv_dtype", "str", None, "token rows of a draft model of its own", role="decided", shown=True),
    flag("speculative_draft_model_quantization", "str", None, "weights of the draft",
         choices=words.QUANTIZATION, moves=WEIGHTS,
         unplanned="the draft's weights are estimated in the checkpoint's own format"),
    flag("speculative_draft_kv_cache_dtype", "str", None, "token rows of the draft alone",
         choices="auto fp8_e5m2 fp8_e4m3 bf16 bfloat16", becomes="draft_kv_dtype"),
    flag("speculative_draft_attention_backend", "str", None, "attention kernels of the draft; fa4 keeps its rows BF16",
         becomes="draft_kv_dtype"),
    flag("speculative_draft_window_size", "int", None,
         "tokens a draft looks back; DFLASH then has its own request table"),
    flag("speculative_dflash_block_size", "int", None, "verify window of DFLASH",
         becomes="speculative_num_draft_tokens"),
    flag("speculative_dspark_block_size", "int", None, "verify window of DSPARK",
         becomes="speculative_num_draft_tokens"),
    flag("enable_multi_layer_eagle", "flag", False, "several draft layers", becomes="max_draft_tokens"),
)
_REQUESTS = (
    flag("max_running_requests", "int", None,
         "requests at once, over all attention groups; 4 MiB each at full context", shown=True, reason=_NO_LIMIT),
    flag("chunked_prefill_size", "int", None,
         "prompt tokens a prefill step, over all attention groups; -1 for no chunks", least=-1, shown=True),
    flag("max_prefill_tokens", "count", 16384, "prompt tokens of a prefill batch (16384)", shown=True, reason=_DEFAULT),
    flag("decode_graph", "str", "full", "decode graphs: full or disabled", role="decided", shown=True),
    flag("decode_graph_max_bs", "int", 0, "largest captured decode batch", role="decided", shown=True),
    flag("prefill_graph", "str", "disabled", "prefill graphs: breakable or disabled", role="decided", shown=True),
    flag("prefill_graph_max_bs", "int", None, "largest captured prefill batch, in tokens", role="decided", shown=True),
    flag("enable_mixed_chunk", "flag", False, "prefill and decode in one batch", moves=NOTHING),
    flag("enable_two_batch_overlap", "flag", False, "two micro batches at once; no prefill graph",
         becomes="prefill_graph"),
    flag("enable_pdmux", "flag", False, "prefill and decode share the GPU; no adaptive speculation",
         becomes="max_draft_tokens"),
    flag("cuda_graph_max_bs_decode", "int", None, "largest captured decode batch; 2 MiB a request are reserved",
         becomes="decode_graph_max_bs"),
    flag("cuda_graph_max_bs_prefill", "int", None, "largest captured prefill batch, in tokens",
         becomes="prefill_graph_max_bs"),
    flag("cuda_graph_bs_decode", "ints", None, "captured decode batches, one by one", becomes="decode_graph_max_bs"),
    flag("cuda_graph_bs_prefill", "ints", None, "captured prefill batches, one by one", becomes="prefill_graph_max_bs"),
    flag("cuda_graph_backend_decode", "str", None, "decode graphs", choices=words.GRAPH, becomes="decode_graph"),
    flag("cuda_graph_backend_prefill", "str", None, "prefill graphs; breakable reserves 1.5 GiB",
         choices=words.GRAPH, becomes="prefill_graph"),
    flag("cuda_graph_config", "json", None, "both phases' graph settings", becomes="decode_graph prefill_graph"),
    flag("disable_cuda_graph", "flag", False, "no graphs in either phase", becomes="decode_graph prefill_graph"),
    flag("disable_decode_cuda_graph", "flag", False, "no decode graphs; frees their reserve", becomes="decode_graph"),
    flag("disable_prefill_cuda_graph", "flag", False, "no prefill graphs; frees their reserve",
         becomes="prefill_graph"),
)
_MEMORY = (
    flag("mem_fraction_static", "float", None,
         "share of free memory for weights and pools; the engine guesses if left out",
         most=1.0, shown=True, of_card=True),
    flag("quantization", "str", None, "weight format, when the checkpoint does not say",
         choices=words.QUANTIZATION, moves=WEIGHTS),
    flag("cpu_offload_gb", "int", 0, "weights kept in host memory, GB", least=0, moves=WEIGHTS,
         unplanned="weights moved to the host are not taken off the estimate: give --weights-gib"),
    flag("enable_memory_saver", "flag", False, "pools can be released at run time; sizes stay",
         moves=NOTHING, unread="it changes how pools are mapped, not their bytes"),
    flag("language_only", "flag", False, "leave the vision tower to another server", moves=BOTH, shown=True),
    flag("language_model_only", "flag", False, "never build the vision tower; refused for this model", moves=NOTHING),
    flag("enable_multimodal", "flag", None, "serve images; on for this model", moves=BOTH, becomes="multimodal"),
    flag("multimodal", "flag", True, "whether the server keeps the vision tower", role="decided", moves=BOTH),
    flag("mm_enable_dp_encoder", "switch", None, "a whole vision tower on each GPU",
         moves=WEIGHTS, negative=("--no-mm-enable-dp-encoder",)),
    flag("mm_feature_transport", "str", None, "image features; cuda_ipc reserves 1 GiB",
         choices="cpu cuda_ipc cuda_vmm", shown=True, becomes="mm_reserve_mib"),
    flag("mm_reserve_mib", "int", 0, "MiB set aside for image features", role="decided", shown=True),
    flag("keep_mm_feature_on_device", "flag", False, "image features stay on the GPU (0.5.20)",
         gone="0.5.21", becomes="mm_reserve_mib"),
    flag("json_model_override_args", "json", None, "keys laid over the model's config.json",
         moves=BOTH, unplanned="the model's own config.json is planned: give a changed one with --model"),
    flag("device", "str", None, "kind of device (cuda, xpu, npu, ...); found by the engine when left out",
         moves=NOTHING, printed="fact", unread="only CUDA and ROCm servers are planned, told apart by --gpu"),
)
_ROLES = (
    flag("disaggregation_mode", "str", "null", "this server's role", choices="null prefill decode", shown=True),
    flag("disaggregation_transfer_backend", "str", "mooncake", "how a PD pair moves caches; refusals only",
         choices="mooncake mooncake_tcp nixl ascend fake mori", moves=NOTHING),
    flag("disaggregation_decode_extra_slots", "int", None, "request rows for transfers in flight, per worker",
         least=0, shown=True),
    flag("disaggregation_decode_enable_radix_cache", "flag", False, "prefix cache on the decode server",
         shown=True, becomes="disable_radix_cache"),
    flag("disaggregation_decode_retraction_backup", "str", None, "where a decode server keeps retracted requests",
         choices="cpu_tensor host_pool none>=0.5.21", moves=NOTHING),
    flag("enable_pd_role_switch", "flag", False, "roles may change at run time (0.5.21 on)",
         since="0.5.21", shown=True),
)
_HOST_POOLS = (
    flag("hicache_ratio", "float", None, "host pool over device pool (2.0)", shown=True),
    flag("hicache_size", "int", 0, "host pool in GB (10**9 bytes), per GPU; wins over the ratio", least=0, shown=True),
    flag("hicache_mem_layout", "str", "page_first", "order of bytes on the host; page_first or page_first_direct here",
         choices=words.HOST_LAYOUTS, shown=True),
    flag("hicache_io_backend", "str", "kernel", "how bytes move", choices="direct kernel kernel_ascend", shown=True),
    flag("hicache_write_policy", "str", "write_through", "when bytes move",
         choices="write_back write_through write_through_selective", shown=True, moves=NOTHING),
    flag("hicache_host_memory_mode", "str", "cache", "a cache, or a buffer before storage",
         choices="cache buffer_only", shown=True, becomes="hicache_ratio"),
    flag("hicache_host_memory_fraction", "float", 0.8, "share of free host memory (0.8, 0.5.21 on)",
         most=1.0, since="0.5.21", printed="fact", shown=True),
    flag("hicache_storage_backend", "str", None, "a third tier behind the host pool",
         choices=words.STORAGE, shown=True, becomes="hicache_mem_layout"),
)
_HOST = (
    flag("enable_hierarchical_cache", "flag", False, "copy of the caches in host memory",
         "--enable-hicache", shown=True),
    *(row._replace(under="enable_hierarchical_cache") for row in _HOST_POOLS),
)
# Read from a launch and from a log; kvplan has options of its own for them.
_LAUNCH = (
    flag("model_path", "str", None, "the checkpoint", "--model", role="named", moves=NOTHING, printed="fact"),
    flag("revision", "str", None, "its revision on the Hub", role="named", moves=NOTHING, printed="fact"),
    flag("config", "str", None, "a YAML file of flags", role="named", moves=NOTHING, printed=""),
)
# They take or free GPU memory that is not planned: that they stand in a launch is said, their values are not read.
_BESIDE = (
    *_beside("LoRA adapters", "enable_lora lora_paths uno_lora_path"),
    *_beside("experts twice", "ep_num_redundant_experts"),
    *_beside("experts on the CPU", "kt_weight_path kt_num_gpu_experts", unplanned=_ON_THE_HOST),
    *_beside("experts in host memory", "enable_paged_experts paged_experts_num_resident", since="0.5.23",
             unplanned=_ON_THE_HOST),
    *_beside("weights kept elsewhere", "weight_cache_mode offload_group_size ple_offload_embedding",
             unplanned=_ON_THE_HOST),
    *_beside("buffers of collectives", "enable_symm_mem enable_torch_symm_mem enable_nccl_nvls"),
)
# fmt: on

TABLE: tuple[Flag, ...] = (
    *_panel("Parallel layout", _PARALLEL),
    *_panel("Token pool", _TOKENS),
    *_panel("State pool", _STATE),
    *_panel("Speculation", _SPECULATION),
    *_panel("Requests and batches", _REQUESTS),
    *_panel("Memory", _MEMORY),
    *_panel("Roles (PD)", _ROLES),
    *_panel("Host cache (HiCache)", _HOST),
    *_panel("Launch", _LAUNCH),
    *_panel("Beside the pools", _BESIDE),
)
FLAGS: tuple[Flag, ...] = tuple(row for row in TABLE if row.role == "flag")
FLAG: Mapping[str, Flag] = {row.name: row for row in TABLE}


@lru_cache
def missing_in(release: str) -> frozenset[str]:
    """The names of the flags that `release` does not have."""
    return frozenset(flag.name for flag in FLAGS if not flag.exists_in(release))


@lru_cache
def narrowed_in(release: str) -> Mapping[str, Sequence[str]]:
    """The flags that `release` does not have, or takes fewer values of: those it takes."""
    return narrowed(FLAGS, release)
