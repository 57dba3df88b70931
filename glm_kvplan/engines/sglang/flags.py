"""The engine's launch flags that touch memory, declared once: our own options and the command reader use them.

Names, aliases and accepted values are the engine's own in releases 0.5.20 to 0.5.23 (arg_groups/fields/*.py);
where releases differ the union stands here and `data/engine_flags.json` says which release has what.
"""

from typing import NamedTuple


class Flag(NamedTuple):
    """One flag of the engine. `name` is the engine's field, `options` its spellings (`--tp-size`, `--tp`).

    `kind` says what it takes: int, count (an int that may carry 1k = 1000 or 1Ki = 1024), float, str, json (an
    object), ints (one or more), flag (nothing; true) or switch (nothing; `negative` spells false).
    """

    name: str
    options: tuple[str, ...]
    kind: str
    choices: tuple[str, ...] | None
    help: str
    group: str
    negative: tuple[str, ...] = ()


def _option(name: str) -> str:
    return "--" + name.replace("_", "-")


def _panel(group: str, rows: tuple[Flag, ...]) -> tuple[Flag, ...]:
    return tuple(row._replace(group=group) for row in rows)


def _flag(name: str, kind: str, help: str, *aliases: str, choices: str = "", negative: tuple[str, ...] = ()) -> Flag:
    """A row of the table: the first option is the field's name with dashes, as in the engine."""
    words = tuple(choices.split()) or None
    return Flag(name, (_option(name), *aliases), kind, words, help, "", negative)


_ATTENTION = (
    "triton torch_native flex_attention dsa nsa qsa dsv4 compressed fa3 fa4 flashinfer llada2_cfg_flashinfer "
    "flashmla trtllm_mla cutedsl_mla tokenspeed_mla trtllm_mha hpc_ops minicpm_flashattn minicpm_flashinfer "
    "aiter wave intel_amx ascend intel_xpu"
)
_DSA_DECODE = (
    "flashmla_sparse flashmla_sparse_q8 flashmla_kv flashmla_auto flashinfer_sparse_mla fa3 tilelang triton "
    "aiter trtllm intel_xpu"
)
_DSA_PREFILL = _DSA_DECODE + " triton_sparse_mla"
_LINEAR = "triton cutedsl flashinfer flashkda nvidia_kda ptx_kda helion intel_xpu"
_GRAPH = "full breakable tc_piecewise disabled"
_QUANTIZATION = (
    "awq fp8 mxfp8 gptq gptq_marlin awq_marlin bitsandbytes gguf modelopt modelopt_fp8 modelopt_fp4 "
    "nvfp4_online modelopt_mixed petit_nvfp4 w8a8_int8 w8a8_fp8 moe_wna16 w4afp8 mxfp4 auto-round "
    "auto-round-int8 compressed-tensors modelslim mxfp_w4a8 quark quark_int4fp8_moe quark_mxfp4 mlx_q4 mlx_q8 "
    "unquant humming"
)
_KV_DTYPE = "auto fp8_e5m2 fp8_e4m3 mxfp8 bf16 bfloat16 nvfp4 fp4_mx_block16 fp4_e2m1"
_RUNNERS = (
    "auto deep_gemm triton triton_kernel flashinfer_trtllm experimental_sgl_trtllm flashinfer_trtllm_routed "
    "flashinfer_cutlass flashinfer_mxfp4 flashinfer_cutedsl flashinfer_megamoe cutlass aiter marlin humming "
    "experimental_sgl_marlin lora_cutedsl lora_triton lora_marlin hpc_ops megamoe intel_xpu"
)
_A2A = "none deepep mooncake nixl mori ascend_fuseep flashinfer megamoe deepep_v2 pplx ascend_tp flashinfer_megamoe"
_STORAGE = "file sim mooncake npu_memcache hf3fs nixl aibrix dynamic eic simm mori shm tensorcast seaweedfs"

_PARALLEL = (
    _flag(
        "tp_size",
        "int",
        "GPUs of one engine; state per GPU shrinks with it, token rows do not",
        "--tp",
        "--tensor-parallel-size",
    ),
    _flag(
        "pp_size",
        "int",
        "pipeline stages; each holds its own layers' pools",
        "--pipeline-parallel-size",
    ),
    _flag(
        "dp_size",
        "int",
        "copies of the engine, or attention groups with --enable-dp-attention",
        "--dp",
        "--data-parallel-size",
    ),
    _flag("enable_dp_attention", "flag", "split attention into --dp-size groups; each holds its own requests"),
    _flag(
        "attn_dp_size",
        "int",
        "attention groups inside the TP group (0.5.22 on)",
        "--attention-data-parallel-size",
    ),
    _flag("attn_cp_size", "int", "ranks that share one prompt's prefill", "--attention-context-parallel-size"),
    _flag("enable_prefill_cp", "flag", "share a prompt's prefill over ranks; token rows are replicated"),
    _flag("cp_strategy", "str", "how prefill CP cuts a prompt", choices="zigzag interleave"),
    _flag(
        "dcp_size", "int", "decode context parallelism; refused or unsupported here", "--decode-context-parallel-size"
    ),
    _flag("ep_size", "int", "ranks the experts are spread over; weights only", "--expert-parallel-size", "--ep"),
    _flag("moe_dp_size", "int", "copies of the experts inside the TP group", "--moe-data-parallel-size"),
    _flag("moe_a2a_backend", "str", "expert exchange; deepep reserves 2 GiB more", choices=_A2A),
    _flag("moe_runner_backend", "str", "expert kernels; weights only: deep_gemm keeps more scales", choices=_RUNNERS),
    _flag("moe_dense_tp_size", "int", "TP width of the dense MLP layers; weights only"),
    _flag("enable_dp_lm_head", "flag", "split the output head inside attention groups; weights only"),
    _flag("nnodes", "int", "hosts; sets how many ranks share one host's memory"),
)
_TOKENS = (
    _flag(
        "kv_cache_dtype", "str", "bytes of a token row: bfloat16 1024, fp8_e4m3 512 or 528 a layer", choices=_KV_DTYPE
    ),
    _flag("page_size", "int", "tokens a page; the engine overrides it for this model"),
    _flag("max_total_tokens", "count", "cap of the token pool, per GPU"),
    _flag("context_length", "count", "longest request; 4 bytes a token in each request's table row"),
    _flag("attention_backend", "str", "attention kernels; dsa when left out", choices=_ATTENTION),
    _flag("prefill_attention_backend", "str", "attention kernels of prefill alone", choices=_ATTENTION),
    _flag("decode_attention_backend", "str", "attention kernels of decode alone", choices=_ATTENTION),
    _flag(
        "dsa_prefill_backend",
        "str",
        "sparse prefill kernel; trtllm makes FP8 rows raw (512 bytes)",
        choices=_DSA_PREFILL,
    ),
    _flag(
        "dsa_decode_backend", "str", "sparse decode kernel; trtllm makes FP8 rows raw (512 bytes)", choices=_DSA_DECODE
    ),
    _flag("enable_dsa_cache_layer_split", "flag", "spread layers' caches over CP ranks; not for this model"),
    _flag("enable_kv_cache_sharding", "flag", "shard token rows over ranks; refused for this model (0.5.22 on)"),
    _flag("enable_hisparse", "flag", "keep cold token rows in host memory; not wired for this model"),
    _flag("hisparse_config", "str", "settings of --enable-hisparse", "--hierarchical-sparse-attention-extra-config"),
    _flag("enable_unified_memory", "flag", "one buffer for tokens and state; refused for this model"),
    _flag("enable_page_major_kv_layout", "flag", "page-major rows; needs --enable-unified-memory"),
    _flag("prefill_only_disable_kv_cache", "flag", "no token pool; for embedding models"),
)
_STATE = (
    _flag("max_mamba_cache_size", "int", "state slots, over all attention groups"),
    _flag("mamba_full_memory_ratio", "float", "state memory over token memory when slots are not given (0.9)"),
    _flag("mamba_ssm_dtype", "str", "recurrent state; bfloat16 halves a slot", choices="float32 bfloat16 float16"),
    _flag(
        "mamba_radix_cache_strategy",
        "str",
        "slots a request: extra_buffer 5, lazy 4, no_buffer 3",
        choices="auto no_buffer extra_buffer extra_buffer_lazy",
    ),
    _flag("disable_radix_cache", "flag", "no prefix cache; one slot a request"),
    _flag("disable_overlap_schedule", "flag", "no CPU/GPU overlap; one tracking slot fewer a request"),
    _flag("mamba_track_interval", "int", "tokens between tracked states; a multiple of the page"),
    _flag("linear_attn_backend", "str", "KDA kernels; others than triton need the radix cache off", choices=_LINEAR),
    _flag("linear_attn_decode_backend", "str", "KDA kernels of decode alone", choices=_LINEAR),
    _flag("linear_attn_prefill_backend", "str", "KDA kernels of prefill alone", choices=_LINEAR),
    _flag("linear_attn_verify_backend", "str", "KDA kernels of draft verification", choices=_LINEAR + " nv_cutedsl"),
    _flag("enable_linear_replayssm", "flag", "replay rings for decode; refused for this model"),
    _flag("enable_linear_replayssm_spec", "flag", "a ring per slot instead of verify snapshots (0.5.21 on)"),
    _flag("linear_replayssm_cache_len", "int", "tokens in a replay ring (16)"),
    _flag("enable_int8_mamba_checkpoint", "flag", "a second, int8 pool of states; never charged to the budget"),
    _flag("int8_mamba_ckpt_size", "int", "slots of the int8 pool (twice the state slots)"),
)
_SPECULATION = (
    _flag("speculative_algorithm", "str", "EAGLE or NEXTN: the checkpoint's own draft layer"),
    _flag("speculative_num_steps", "int", "draft steps (3)"),
    _flag("speculative_eagle_topk", "int", "branches a step; 1 for this model"),
    _flag("speculative_num_draft_tokens", "int", "tokens verified at once; a state snapshot each, per request"),
    _flag("speculative_adaptive", "flag", "vary the steps; allocates for the largest candidate"),
    _flag("speculative_adaptive_config", "str", "candidates of --speculative-adaptive"),
    _flag("speculative_draft_model_path", "str", "another draft checkpoint", "--speculative-draft-model"),
    _flag("speculative_draft_model_quantization", "str", "weights of the draft", choices=_QUANTIZATION),
    _flag(
        "speculative_draft_kv_cache_dtype",
        "str",
        "token rows of the draft alone",
        choices="auto fp8_e5m2 fp8_e4m3 bf16 bfloat16",
    ),
    _flag("speculative_dflash_block_size", "int", "verify window of DFLASH"),
    _flag("enable_multi_layer_eagle", "flag", "several draft layers"),
)
_REQUESTS = (
    _flag("max_running_requests", "int", "requests at once, over all attention groups; 4 MiB each at full context"),
    _flag("chunked_prefill_size", "int", "prompt tokens a prefill step, over all attention groups; -1 for no chunks"),
    _flag("max_prefill_tokens", "count", "prompt tokens of a prefill batch (16384)"),
    _flag("enable_mixed_chunk", "flag", "prefill and decode in one batch"),
    _flag("enable_two_batch_overlap", "flag", "two micro batches at once; no prefill graph"),
    _flag("enable_pdmux", "flag", "prefill and decode share the GPU; no adaptive speculation"),
    _flag("cuda_graph_max_bs_decode", "int", "largest captured decode batch; 2 MiB a request are reserved"),
    _flag("cuda_graph_max_bs_prefill", "int", "largest captured prefill batch, in tokens"),
    _flag("cuda_graph_bs_decode", "ints", "captured decode batches, one by one"),
    _flag("cuda_graph_bs_prefill", "ints", "captured prefill batches, one by one"),
    _flag("cuda_graph_backend_decode", "str", "decode graphs", choices=_GRAPH),
    _flag("cuda_graph_backend_prefill", "str", "prefill graphs; breakable reserves 1.5 GiB", choices=_GRAPH),
    _flag("cuda_graph_config", "json", "both phases' graph settings"),
    _flag("disable_cuda_graph", "flag", "no graphs in either phase"),
    _flag("disable_decode_cuda_graph", "flag", "no decode graphs; frees their reserve"),
    _flag("disable_prefill_cuda_graph", "flag", "no prefill graphs; frees their reserve"),
)
_MEMORY = (
    _flag("mem_fraction_static", "float", "share of free memory for weights and pools; the engine guesses if left out"),
    _flag("quantization", "str", "weight format, when the checkpoint does not say", choices=_QUANTIZATION),
    _flag("cpu_offload_gb", "int", "weights kept in host memory, GB"),
    _flag("enable_memory_saver", "flag", "pools can be released at run time; sizes stay"),
    _flag("language_only", "flag", "leave the vision tower to another server"),
    _flag("language_model_only", "flag", "never build the vision tower; refused for this model"),
    _flag("enable_multimodal", "flag", "serve images; on for this model"),
    _flag(
        "mm_enable_dp_encoder",
        "switch",
        "a whole vision tower on each GPU",
        negative=("--no-mm-enable-dp-encoder",),
    ),
    _flag("mm_feature_transport", "str", "image features; cuda_ipc reserves 1 GiB", choices="cpu cuda_ipc cuda_vmm"),
    _flag("keep_mm_feature_on_device", "flag", "image features stay on the GPU (0.5.20)"),
    _flag("json_model_override_args", "json", "keys laid over the model's config.json"),
    _flag("device", "str", "kind of device (cuda, xpu, npu, ...); found by the engine when left out"),
)
_ROLES = (
    _flag("disaggregation_mode", "str", "this server's role", choices="null prefill decode"),
    _flag("disaggregation_decode_extra_slots", "int", "request rows for transfers in flight, per worker"),
    _flag("disaggregation_decode_enable_radix_cache", "flag", "prefix cache on the decode server"),
    _flag("enable_pd_role_switch", "flag", "roles may change at run time (0.5.21 on)"),
)
_HOST = (
    _flag("enable_hierarchical_cache", "flag", "copy of the caches in host memory", "--enable-hicache"),
    _flag("hicache_ratio", "float", "host pool over device pool (2.0)"),
    _flag("hicache_size", "int", "host pool in GB (10**9 bytes), per GPU; wins over the ratio"),
    _flag(
        "hicache_mem_layout",
        "str",
        "order of bytes on the host; page_first or page_first_direct here",
        choices="layer_first page_first page_first_direct page_first_kv_split page_head",
    ),
    _flag("hicache_io_backend", "str", "how bytes move", choices="direct kernel kernel_ascend"),
    _flag(
        "hicache_write_policy",
        "str",
        "when bytes move",
        choices="write_back write_through write_through_selective",
    ),
    _flag("hicache_host_memory_mode", "str", "a cache, or a buffer before storage", choices="cache buffer_only"),
    _flag("hicache_host_memory_fraction", "float", "share of free host memory (0.8, 0.5.21 on)"),
    _flag("hicache_storage_backend", "str", "a third tier behind the host pool", choices=_STORAGE),
)

FLAGS: tuple[Flag, ...] = (
    *_panel("Parallel layout", _PARALLEL),
    *_panel("Token pool", _TOKENS),
    *_panel("State pool", _STATE),
    *_panel("Speculation", _SPECULATION),
    *_panel("Requests and batches", _REQUESTS),
    *_panel("Memory", _MEMORY),
    *_panel("Roles (PD)", _ROLES),
    *_panel("Host cache (HiCache)", _HOST),
)
