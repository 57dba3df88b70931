"""Context length, requests and batches, and whether CUDA graphs run."""

from glm_kvplan.engines.vllm.flags import FLAG
from glm_kvplan.engines.vllm.resolve.site import Decisions
from glm_kvplan.errors import InputError
from glm_kvplan.units import GIB, MIB

GRAPH_MODES = ("NONE", "PIECEWISE", "FULL", "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE")
_MODE_OF_LEVEL = {"0": "NONE", "1": "PIECEWISE"}
BATCHED_EXPERTS_TOKENS = 256  # DEFAULT_MAX_NUM_BATCHED_TOKENS_FOR_BATCHED_DP


def context_length(given: Decisions) -> tuple[int, bool]:
    """(--max-model-len, whether it is fitted to the memory). Raises RefusedError above the model's own."""
    longest = given.site.geometry.max_position_embeddings
    asked = given.value("max_model_len")
    if asked is None:
        given.decide("max_model_len", longest, "the model's own", "max_model_len")
        return longest, False
    length = given.whole("max_model_len")
    if length == -1:
        given.decide(
            "max_model_len", longest, "-1: lowered to what the blocks can hold, at most the model's own", "auto_fit"
        )
        return longest, True
    if length < 1:
        raise InputError(f"--max-model-len {length}: must be at least 1, or -1 for what fits")
    if length > longest and not given.site.permitted("VLLM_ALLOW_LONG_MAX_MODEL_LEN"):
        given.refuse(
            f"--max-model-len {length} is above the model's {longest}; VLLM_ALLOW_LONG_MAX_MODEL_LEN=1 allows it",
            "max_model_len",
        )
    return length, False


def batches(given: Decisions, max_model_len: int, *, batched_experts: bool) -> tuple[int, int]:
    """(max_num_seqs, max_num_batched_tokens) of an API server. Raises RefusedError where they contradict each other.

    Source: engine/arg_utils.py:2940 at 0.33.0 (`get_batch_defaults` and what follows it).
    """
    tokens, requests, card = _defaults(given)
    if batched_experts:
        tokens, card = BATCHED_EXPERTS_TOKENS, "experts that exchange in batches of fixed size"
    throughput = given.text("performance_mode") == "throughput"
    if throughput:
        tokens, requests = 2 * tokens, 2 * requests
    chunked = given.on("enable_chunked_prefill", True)
    asked_tokens, asked_requests = given.value("max_num_batched_tokens"), given.value("max_num_seqs")
    seqs = given.whole("max_num_seqs", requests)
    if asked_tokens is None:
        tokens = tokens if chunked else max(tokens, max_model_len)
        tokens = min(seqs * max_model_len, tokens)
    else:
        tokens = given.whole("max_num_batched_tokens")
    if asked_requests is None:
        seqs = min(seqs, tokens)
    if tokens < max_model_len and not chunked:
        given.refuse(
            f"--max-num-batched-tokens {tokens} is below --max-model-len {max_model_len} and chunked prefill is off",
            "batch_below_length",
        )
    if tokens < seqs:
        given.refuse(f"--max-num-batched-tokens {tokens} is below --max-num-seqs {seqs}", "batch_below_requests")
    why = f"an API server's default on {card}" + (", doubled by --performance-mode throughput" if throughput else "")
    given.keep("max_num_seqs", seqs, why, "batches")
    given.keep("max_num_batched_tokens", tokens, why, "batches")
    return seqs, tokens


def _defaults(given: Decisions) -> tuple[int, int, str]:
    gpu = given.site.gpu
    memory = gpu.memory_mib * MIB
    small = given.site.profile.small_batches_on_gb10 and gpu.capability == (12, 1)
    if memory >= 160 * GIB:
        return 16384, 1024, "a card of 160 GiB or more"
    if memory >= 70 * GIB and not small:
        return 8192, 1024, "a card of 70 GiB or more"
    return 2048, 256, "a GB10" if small else "a card below 70 GiB"


def graph_mode(given: Decisions) -> str:
    """The CUDA graphs that are captured: one of GRAPH_MODES."""
    config = given.table("compilation_config")
    if given.on("enforce_eager"):
        given.decide("enforce_eager", True, "given: no CUDA graphs")
        return "NONE"
    level = str(given.value("optimization_level")).removeprefix("O")
    mode = str(config.get("cudagraph_mode") or _MODE_OF_LEVEL.get(level, "FULL_AND_PIECEWISE")).upper()
    if mode not in GRAPH_MODES:
        raise InputError(f"--compilation-config: cudagraph_mode {mode[:40]} is not one of {', '.join(GRAPH_MODES)}")
    return mode


def largest_capture(given: Decisions) -> int | None:
    """The largest batch that is captured, where flags say it. Raises RefusedError where two of them do."""
    config = given.table("compilation_config")
    found = None
    for name in ("max_cudagraph_capture_size", "cudagraph_capture_sizes"):
        outer, inner = given.value(name), config.get(name)
        if outer is not None and inner is not None:
            given.refuse(f"{FLAG[name].option} and {name} of --compilation-config exclude each other", "batches")
        value = inner if outer is None else outer
        if isinstance(value, list | tuple) and value:
            value = max(size for size in value if isinstance(size, int))
        if isinstance(value, int):
            found = value if found is None else min(found, value)
    return found
