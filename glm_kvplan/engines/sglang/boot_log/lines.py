"""The engine's boot messages as data: what each looks like and what its numbers are called.

Device sizes are printed as "GB" and are GiB (2**30); host cache sizes are printed as "GB" and are GB (10**9).
"""

import re
from typing import Literal, NamedTuple, get_args

PrintedFailure = Literal["no_state_slots", "no_token_memory", "no_tokens", "no_requests"]
MessageName = Literal[  # "slots" and "weights": what a server says of itself, under no message of a log
    "load_begin", "load_end", "pools_end", "reserve", "sparse_kernels", "state_pool", "replay_rings",
    "token_pool", "ready", "capped", "reduced", "decode_slots", "host_kv", "host_state", "host_index",
    "host_ratio", "baseline", "distributed_end", "attached", "slots", "weights",
    PrintedFailure,
]  # fmt: skip


class Shape(NamedTuple):
    """One message: `anchor` is a piece of it that is always there, `pattern` names its numbers and begins where the
    message begins.

    `source` is where the engine prints it.
    """

    name: MessageName
    anchor: str
    pattern: re.Pattern[str]
    source: str


def _shape(name: MessageName, anchor: str, pattern: str, source: str) -> Shape:
    return Shape(name, anchor, re.compile(pattern), source)


_N = r"\d{1,15}"
_X = r"-?\d{1,12}(?:\.\d{1,6})?"

SERVER_ARGUMENTS = "server_args="

SHAPES: tuple[Shape, ...] = (
    # memory
    _shape(
        "load_begin",
        "Load weight begin.",
        rf"Load weight begin\. avail mem=(?P<available>{_X}) GB",
        "model_executor/model_runner.py:1274 at 0.5.23",
    ),
    _shape(
        "load_end",
        "Load weight end.",
        rf"Load weight end\. .{{0,80}}?type=(?P<type>\w{{1,80}}), .{{0,400}}?avail mem=(?P<available>{_X}) GB, "
        rf"mem usage=(?P<usage>{_X}) GB",
        "model_executor/model_runner.py:1373 at 0.5.23",
    ),
    _shape(
        "pools_end",
        "Memory pool end.",
        rf"Memory pool end\. avail mem=(?P<available>{_X}) GB",
        "mem_cache/kv_cache_configurator.py:498 at 0.5.23",
    ),
    _shape(
        "reserve",
        "of the KV budget for post-sizing",
        rf"Reserving (?P<gib>{_X}) GB of the KV budget for post-sizing multimodal",
        "mem_cache/kv_cache_configurator.py:214 at 0.5.23",
    ),
    # what the engine chose for the card
    _shape(
        "sparse_kernels",
        "Set DSA backends for",
        r"Set DSA backends for .{1,60}?: prefill=(?P<prefill>\w{1,40}), decode=(?P<decode>\w{1,40})",
        "arg_groups/overrides.py:622-741 at 0.5.23",
    ),
    # pools
    _shape(
        "state_pool",
        "Mamba Cache is allocated.",
        rf"Mamba Cache is allocated\. max_mamba_cache_size: (?P<slots>{_N}), conv_state size: (?P<conv>{_X})GB, "
        rf"ssm_state size: (?P<ssm>{_X})GB(?: intermediate_ssm_state_cache size: (?P<snapshot_ssm>{_X})GB)?"
        rf"(?: intermediate_conv_window_cache size: (?P<snapshot_conv>{_X})GB)?",
        "mem_cache/memory_pool.py:983-1009 at 0.5.23",
    ),
    _shape(
        "replay_rings",
        "ReplaySSM ring buffers allocated",
        rf"(?:GDN )?ReplaySSM ring buffers allocated \(.{{1,80}}?\): d=(?P<d>{_X})GB, k=(?P<k>{_X})GB, g=(?P<g>{_X})GB"
        rf"(?: rawv=(?P<rawv>{_X})GB, rawk=(?P<rawk>{_X})GB)?(?:, beta=(?P<beta>{_X})GB)?",
        "mem_cache/memory_pool.py:1011 at 0.5.23",
    ),
    _shape(
        "token_pool",
        "KV Cache is allocated.",
        rf"KV Cache is allocated\. dtype: torch\.(?P<dtype>\w{{1,30}}), #tokens: (?P<tokens>{_N}), "
        rf"(?:KV size: (?P<gib>{_X}) GB|K size: (?P<k_gib>{_X}) GB, V size: (?P<v_gib>{_X}) GB)",
        "mem_cache/memory_pool.py:2094-2098 at 0.5.23",
    ),
    _shape(
        "ready",
        "max_total_num_tokens=",
        rf"max_total_num_tokens=(?P<tokens>{_N}), chunked_prefill_size=(?P<chunk>-?{_N}), "
        rf"max_prefill_tokens=(?P<prefill>{_N}), max_running_requests=(?P<requests>{_N}), context_len=(?P<context>{_N})"
        rf"(?:, available_gpu_mem=(?P<available>{_X}) GB)?",
        "managers/scheduler.py:1267-1276 at 0.5.23",
    ),
    # warnings
    _shape(
        "capped",
        "max_running_requests is capped to",
        rf"max_running_requests is capped to (?P<requests>{_N}) by the mamba state cache "
        rf"\(max_mamba_cache_size=(?P<slots>{_N}), (?P<ratio>{_N}) state slots per request\)",
        "mem_cache/kv_cache_configurator.py:3140 at 0.5.23",
    ),
    _shape(
        "reduced",
        "max_running_requests was reduced",
        rf"max_running_requests was reduced from the requested (?P<wanted>{_N}) to (?P<requests>{_N}) ",
        "mem_cache/kv_cache_configurator.py:3166 at 0.5.23",
    ),
    _shape(
        "decode_slots",
        "decode side's max_slots_needed",
        rf"mamba_size \((?P<slots>{_N})\) is less than decode side's max_slots_needed "
        rf"\((?P<needed>{_N}) = (?P<requests>{_N}) reqs \* (?P<ratio>{_N}) slots/req\)",
        "disaggregation/decode.py:325 at 0.5.23",
    ),
    # host cache
    _shape(
        "host_kv",
        "hierarchical KV host pool:",
        rf"Allocating (?P<label>\w{{0,20}}) {{0,2}}hierarchical KV host pool: (?P<tokens>{_N}) tokens, "
        rf"(?P<gb>{_X}) GB host memory"
        rf"(?:\.|, packed MTP KV layers: target_layers=(?P<target_layers>{_N}), draft_layers=(?P<draft_layers>{_N}))",
        "mem_cache/pool_host/base.py:259-278 at 0.5.23",
    ),
    _shape(
        "host_state",
        "host memory for hierarchical Mamba cache",
        rf"Allocating (?P<gb>{_X}) GB host memory for hierarchical Mamba cache "
        rf"\((?:(?P<slots>{_N}) state slots, )?layout=(?P<layout>\w{{1,40}})\)",
        "mem_cache/pool_host/mamba.py:195 at 0.5.23",
    ),
    _shape(
        "host_index",
        "host memory for DSA indexer",
        rf"Allocating (?P<gb>{_X}) GB host memory for DSA indexer \(layout=(?P<layout>\w{{1,40}})\)",
        "mem_cache/pool_host/dsa.py:232-243 at 0.5.23",
    ),
    _shape(
        "host_ratio",
        "HiCache auto-sizing: ratio",
        rf"HiCache auto-sizing: ratio (?P<wanted>{_X}) -> (?P<ratio>{_X}); (?P<budget>{_X}) GiB host memory per rank "
        rf"\(fraction (?P<fraction>{_X}), (?P<ranks>{_N}) ranks",
        "mem_cache/hicache_auto_size.py:114 at 0.5.23",
    ),
    # marks of a release (see releases.py) and of a start that failed
    _shape(
        "baseline",
        "Memory baseline taken.",
        rf"Memory baseline taken\. mem usage=(?P<usage>{_X}) GB",
        "distributed/bootstrap.py:219 at 0.5.23",
    ),
    _shape(
        "distributed_end",
        "Init torch distributed ends.",
        rf"Init torch distributed ends\. .{{0,80}}?mem usage=(?P<usage>{_X}) GB",
        "distributed/bootstrap.py:164 at 0.5.20",
    ),
    _shape(
        "attached",
        "Attached hybrid pool stack to",
        r"Attached hybrid pool stack to \w{1,40}: pools=(?P<pools>[A-Z +]{1,80}), (?P<key>transfer_layer_\w{1,20})=",
        "mem_cache/hybrid_cache/hybrid_pool_assembler.py:2518 at 0.5.23",
    ),
    _shape(
        "no_state_slots",
        "Not enough GPU memory for hybrid",
        r"Not enough GPU memory for hybrid",
        "mem_cache/kv_cache_configurator.py:3229-3409 at 0.5.23",
    ),
    _shape(
        "no_token_memory",
        "Loaded weights leave no GPU memory",
        r"Loaded weights leave no GPU memory for the KV cache",
        "mem_cache/kv_cache_configurator.py:2990-3060 at 0.5.23",
    ),
    _shape(
        "no_tokens",
        "Please try to increase --mem-fraction-static",
        r"Not enough memory\. Please try to increase --mem-fraction-static",
        "mem_cache/kv_cache_configurator.py:3192-3227 at 0.5.23",
    ),
    _shape(
        "no_requests",
        "state cache is too small to serve",
        r"(?:Hybrid \(mamba/linear-attention\) )?state cache is too small to serve\s+any requests",
        "mem_cache/kv_cache_configurator.py:3154 at 0.5.23",
    ),
)

FAILURES: tuple[PrintedFailure, ...] = get_args(PrintedFailure)
ANCHORS: tuple[str, ...] = (SERVER_ARGUMENTS, *(shape.anchor for shape in SHAPES))
BY_ANCHOR = {shape.anchor: shape for shape in SHAPES}
