"""The table of vLLM's launch flags that touch memory: everything true of a flag stands in its row.

Names, spellings, accepted values and defaults are vLLM's own in releases 0.30.0 to 0.33.0 (engine/arg_utils.py and
the config classes it reads). Rows stand in the order in which resolved values are shown.
"""

from collections.abc import Mapping
from typing import Any

from glm_kvplan.engines.flag import BOTH, NOTHING, RANKS, WEIGHTS, Flag, flag

_KV_DTYPE = (
    "auto float16 bfloat16 fp8 fp8_e4m3 fp8_e5m2 fp8_inc fp8_ds_mla nvfp4_ds_mla turboquant_k8v4 turboquant_4bit_nc "
    "turboquant_k3v4_nc turboquant_3bit_nc octave_k3v4>=0.33.0 octave_k3v3>=0.33.0 octave_k3v3_compact>=0.33.0 "
    "ultraquant_4bit>=0.32.0 int4_per_token_head int8_per_token_head fp8_per_token_head nvfp4 nvfp4_4over6"
)
_STATE_DTYPE = "auto float32 float16 bfloat16"
_A2A = (
    "allgather_reducescatter deepep_high_throughput deepep_low_latency deepep_v2 flashinfer_all2allv "
    "flashinfer_nvlink_one_sided flashinfer_nvlink_two_sided moonep>=0.31.0 mori_high_throughput mori_low_latency "
    "naive nixl_ep pplx"
)
_KDA = "auto triton flashkda flashinfer fused"


def _panel(group: str, rows: tuple[Flag, ...]) -> tuple[Flag, ...]:
    return tuple(row._replace(group=group) for row in rows)


def _switch(name: str, default: object, help: str, *aliases: str, **more: Any) -> Flag:
    """A flag with its opposite: `--no-x`, and from 0.33 on `--disable-x` beside `--enable-x` and the other way."""
    row = flag(name, "switch", default, help, *aliases, **more)
    negative = ["--no-" + row.options[0].removeprefix("--")]
    for prefix, inverse in (("--enable-", "--disable-"), ("--disable-", "--enable-")):
        if row.options[0].startswith(prefix):
            negative.append(inverse + row.options[0].removeprefix(prefix))
    return row._replace(negative=tuple(negative))


# Two lines a flag: what it is and what it does; then its other spellings and what is true of it.
# fmt: off
_PARALLEL = (
    flag("tensor_parallel_size", "int", 1, "GPUs of one engine; a state shrinks with it, a token's rows do not",
         "-tp", most=RANKS, moves=BOTH),
    flag("data_parallel_size", "int", 1, "engines, each with its own blocks and requests",
         "-dp", most=RANKS, moves=BOTH),
    flag("pipeline_parallel_size", "int", 1, "pipeline stages; the model class cannot",
         "-pp", most=RANKS, moves=BOTH),
    flag("decode_context_parallel_size", "int", 1, "GPUs that share a request's tokens (0.32 on)",
         "-dcp", most=RANKS),
    flag("prefill_context_parallel_size", "int", 1, "GPUs that share a prompt's prefill; not planned",
         "-pcp", most=RANKS),
    flag("nnodes", "int", 1, "hosts that the GPUs of all engines lie on, as many on each",
         "-n", most=RANKS, moves=NOTHING),
    _switch("enable_expert_parallel", False, "spread whole experts over the GPUs instead of slices of each",
            "-ep", moves=WEIGHTS),
    flag("all2all_backend", "str", "allgather_reducescatter", "expert exchange",
         choices=_A2A, moves=WEIGHTS),
)
_TOKENS = (
    flag("attention_backend", "str", None, "attention kernels; the GPU's own when left out"),
    flag("attention_config", "json", None, "attention settings; its backend is --attention-backend",
         "-ac"),
    flag("kv_cache_dtype", "str", "auto", "a token's row: bfloat16 1024 bytes a layer, fp8 512, fp8_ds_mla 656",
         choices=_KV_DTYPE),
    flag("kv_cache_dtype_skip_layers", "str", None, "layers kept unquantized; not planned"),
    flag("block_size", "int", None, "tokens the block grows in steps of; the state decides how many steps",
         most=1 << 24),
    flag("max_model_len", "count", None, "longest request; -1 or auto takes what the blocks can hold",
         least=-1),
)
_STATE = (
    _switch("enable_prefix_caching", None, "keep prefixes; one state more a request, from 0.32 on two"),
    flag("mamba_ssm_cache_dtype", "str", "auto", "recurrent state; bfloat16 halves it (0.32 on; not read before)",
         choices=_STATE_DTYPE),
    flag("mamba_cache_dtype", "str", "auto", "convolution window of a state",
         choices=_STATE_DTYPE),
    flag("kda_prefill_backend", "str", None, "KDA prefill kernels; triton keeps no checkpoint of its own (0.32 on)",
         choices=_KDA),
    flag("additional_config", "json", None, "more settings; its kda_prefill_backend is --kda-prefill-backend"),
    flag("mamba_cache_mode", "str", None, "how states are kept for prefixes; prefix caching decides",
         choices="align all<0.32.0 none"),
    flag("mamba_block_size", "int", None, "tokens between kept states; the block whatever it says",
         ),
    flag("prefix_match_unit", "int", None, "tokens a kept prefix can end at; no byte follows from it",
         moves=NOTHING, unread="no byte follows from it"),
    _switch("use_replayssm", False, "replay inputs instead of storing states; not for this model"),
    _switch("enable_mamba_cache_stochastic_rounding", False, "needs a float16 state, which this model has not"),
)
_REQUESTS = (
    flag("max_num_seqs", "int", None, "requests that run at once; a start needs a block for each"),
    flag("max_num_batched_tokens", "count", None, "tokens of a step; activations grow with it"),
    _switch("enable_chunked_prefill", None, "cut long prompts into steps"),
    _switch("disable_chunked_mm_input", False, "never cut an image; not with prefix caching of a state"),
    flag("performance_mode", "str", "balanced", "throughput doubles the defaults of requests and batch",
         choices="balanced interactivity throughput"),
)
_SPECULATION = (
    flag("speculative_config", "json", None, "what drafts, and how many tokens; each is one state more a request",
         "-sc", moves=BOTH),
    flag("spec_method", "str", None, "method of --speculative-config",
         moves=BOTH),
    flag("spec_model", "str", None, "model of --speculative-config",
         moves=BOTH),
    flag("spec_tokens", "int", None, "num_speculative_tokens of --speculative-config",
         moves=BOTH),
)
_MEMORY = (
    flag("gpu_memory_utilization", "float", 0.92, "share of the card that vLLM takes",
         "--device-memory-utilization", most=1),
    flag("kv_cache_memory_bytes", "count", None, "bytes of the blocks on a GPU, instead of profiling",
         least=0, most=1 << 50),
    flag("num_gpu_blocks_override", "int", None, "blocks, whatever the memory",
         least=0),
    _switch("enforce_eager", False, "no CUDA graphs; a start needs no block for each of --max-num-seqs"),
    flag("compilation_config", "json", None, "compilation settings; its cudagraph_mode says which graphs are captured",
         "-cc"),
    flag("optimization_level", "str", None, "0: no CUDA graphs, 1: piecewise ones"),
    flag("max_cudagraph_capture_size", "int", None, "largest captured batch; graphs take memory before the blocks",
         least=0),
    flag("cudagraph_capture_sizes", "ints", None, "captured batches"),
    flag("mm_ipc_gpu_memory_gb", "float", 0, "GPU memory for decoded images, taken from the blocks",
         least=-1),
    flag("cpu_offload_gb", "float", 0, "weights kept in host memory",
         least=-1, moves=WEIGHTS),
    _switch("language_model_only", False, "leave the vision tower out",
            moves=WEIGHTS),
    flag("quantization", "str", None, "how weights are run",
         "-q", moves=WEIGHTS, unread="the checkpoint's own format decides the estimate"),
    flag("dtype", "str", "auto", "activations, rows and windows; bfloat16 is planned",
         choices="auto half float16 bfloat16 float float32"),
    flag("hf_overrides", "json", None, "another config.json; not planned"),
    _switch("disable_hybrid_kv_cache_manager", None, "one kind of block for all layers; this model's cannot"),
)
_NAMES = (
    flag("model", "str", None, "the model; behind `vllm serve` it stands alone",
         role="named", moves=NOTHING),
    flag("revision", "str", None, "its revision on the Hub",
         role="named", moves=NOTHING),
    flag("served_model_name", "str", None, "what clients call it",
         role="named", moves=NOTHING),
    flag("config", "str", None, "a YAML file of flags; the command line wins over it",
         role="named", moves=NOTHING),
)
_BESIDE = (
    _switch("enable_lora", None, "adapters", role="beside"),
    _switch("enable_eplb", False, "redundant experts", role="beside"),
    _switch("enable_dbo", False, "two batches at once", role="beside"),
    _switch("enable_sleep_mode", False, "memory that can be given back", role="beside"),
    flag("offload_group_size", "int", 0, "weights fetched from host memory", least=0, role="beside"),
    flag("kv_transfer_config", "json", None, "a connector that moves blocks", role="beside"),
)
# fmt: on

TABLE: tuple[Flag, ...] = (
    *_panel("parallel layout", _PARALLEL),
    *_panel("tokens and blocks", _TOKENS),
    *_panel("state", _STATE),
    *_panel("requests", _REQUESTS),
    *_panel("speculation", _SPECULATION),
    *_panel("memory", _MEMORY),
    *_panel("names", _NAMES),
    *_panel("memory that is not planned", _BESIDE),
)
FLAGS: tuple[Flag, ...] = tuple(row for row in TABLE if row.role == "flag")
FLAG: Mapping[str, Flag] = {row.name: row for row in TABLE}
