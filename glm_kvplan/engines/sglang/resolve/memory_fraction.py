"""Sizes the engine reads off the card's memory: prefill chunk, graph batches and the static memory fraction."""

from math import inf

from glm_kvplan.engines.sglang.resolve.arguments import Arguments, Reason, Site, megabytes, switched_on
from glm_kvplan.errors import RefusedError
from glm_kvplan.model.geometry import VisionGeometry

_BY_MEMORY = "arg_groups/memory_hook.py:87-181 at 0.5.23"
_CHUNK = Reason("{gpu.name} has {gpu.memory_mib} MiB", _BY_MEMORY)
_CHUNK_GRAPH = Reason(
    "chosen prefill graphs come with a smaller chunk", "arg_groups/cuda_graph_hook.py:412-428 at 0.5.21"
)
_GRAPH_BATCH = Reason("{gpu.name} has {gpu.memory_mib} MiB, --tp-size {a.tp_size}", _BY_MEMORY)
_GRAPH_REQUESTS = Reason(
    "no larger than --max-running-requests {a.max_running_requests}", "arg_groups/memory_hook.py:182-188 at 0.5.23"
)
_GIVEN = Reason("given", "arg_groups/memory_hook.py:199-209 at 0.5.23")
_PREFILL_BATCH = Reason("the engine's default for MLA models", "arg_groups/memory_hook.py:232-259 at 0.5.23")
_FRACTION = Reason(
    "what is left of {gpu.memory_mib} MiB after {a.reserved_mib:g} MiB for activations, graphs and parallel buffers",
    "arg_groups/memory_hook.py:281-337 at 0.5.23",
)
_FRACTION_IMAGES = Reason(
    "what is left of {gpu.memory_mib} MiB after {a.reserved_mib:g} MiB for activations, graphs and parallel buffers, "
    "times 0.95 for the vision tower",
    "arg_groups/memory_hook.py:281-337, 417-462 at 0.5.23",
)
_FRACTION_AITER = Reason("scaled by 0.85 for aiter's workspace", "arg_groups/attention_hook.py:246-272 at 0.5.23")

_RESERVE = Reason(
    "SGLANG_VLM_CACHE_SIZE_MB (100 by default): the cache of image embeddings",
    "mem_cache/kv_cache_configurator.py:202-219 at 0.5.23",
)
_RESERVE_GPU = Reason(
    "SGLANG_VLM_CACHE_SIZE_MB (100 by default) plus SGLANG_MM_FEATURE_CACHE_MB (1024): image features stay on the GPU",
    "mem_cache/kv_cache_configurator.py:202-219 at 0.5.23",
)

# Card memory below this many MiB -> chunk, largest decode graph with tp < 4, and with tp >= 4.
_CLASSES = (
    (20 * 1024, 2048, 8, 8),
    (35 * 1024, 4096, 48, 160),
    (60 * 1024, 4096, 32, 160),
    (160 * 1024, 8192, 256, 512),
    (inf, 16384, 512, 512),
)


def chunk_and_graph_batches(a: Arguments, site: Site) -> None:
    """The prefill chunk and the largest captured batches, by the card's memory.

    Source: arg_groups/memory_hook.py:87-267 at 0.5.23; for chosen breakable graphs
    arg_groups/cuda_graph_hook.py:412-455 at 0.5.21.
    """
    profile = site.profile
    chosen_breakable = a.prefill_graph_chosen and a.prefill_graph == "breakable" and site.gpu.vendor == "cuda"
    if a.chunked_prefill_size is None and chosen_breakable and profile.breakable_prefill_size:
        a.chunked_prefill_size = profile.breakable_prefill_size
        a.because["chunked_prefill_size"] = _CHUNK_GRAPH
    for below, chunk, narrow, wide in _CLASSES:  # noqa: B007  # the first that the card is smaller than
        if site.gpu.memory_mib < below:
            break
    if a.chunked_prefill_size is None:
        a.chunked_prefill_size = chunk
        a.because["chunked_prefill_size"] = _CHUNK
    if a.decode_graph_max_bs:
        a.because["decode_graph_max_bs"] = _GIVEN
    else:
        a.decode_graph_max_bs = narrow if a.tp_size < 4 else wide
        a.because["decode_graph_max_bs"] = _GRAPH_BATCH
        requests = a.max_running_requests
        if profile.graph_batch_capped_by_requests and requests is not None and requests < a.decode_graph_max_bs:
            a.decode_graph_max_bs = requests
            a.because["decode_graph_max_bs"] = _GRAPH_REQUESTS
    _prefill_batch(a, site)


def _prefill_batch(a: Arguments, site: Site) -> None:
    profile, chunk = site.profile, a.chunked_prefill_size or 0
    if a.prefill_graph_max_bs is None and a.prefill_graph == "breakable" and a.moe_a2a_backend == "deepep":
        a.prefill_graph_max_bs = 2048  # deepep's aligned buckets are laid out before any default is known
    if a.prefill_graph_max_bs is None:
        most = profile.prefill_graph_max_bs
        a.prefill_graph_max_bs = min(most, chunk) if profile.prefill_graph_capped_by_chunk else most
        if a.max_total_tokens is not None:
            a.prefill_graph_max_bs = min(a.prefill_graph_max_bs, a.max_total_tokens)
        a.because["prefill_graph_max_bs"] = _PREFILL_BATCH
    else:
        a.because["prefill_graph_max_bs"] = _GIVEN


def breakable_prefill_batch(a: Arguments, site: Site) -> None:
    """Releases that leave the prefill graph off by default widen a chosen one, after the memory is reserved."""
    size = site.profile.breakable_prefill_size
    if size and a.prefill_graph == "breakable" and not (a.prefill_graph_max_bs_chosen or a.prefill_graph_bs_chosen):
        a.prefill_graph_max_bs = size
        a.because["prefill_graph_max_bs"] = _CHUNK_GRAPH


def multimodality(a: Arguments, site: Site) -> None:
    """Whether the server keeps the vision tower, and what --language-only and its sibling mean for this model."""
    a.multimodal = a.enable_multimodal is not False  # the architecture says so, with a vision tower or without
    if a.language_model_only:
        raise RefusedError(
            "--language-model-only does not support this architecture; use --language-only",
            "arg_groups/model_hook.py:1106 at 0.5.23",
        )


def static_fraction(a: Arguments, site: Site) -> None:
    """mem_fraction_static: what the engine leaves after activations, graphs and parallel buffers, to its own float.

    Source: arg_groups/memory_hook.py:281-462 at 0.5.23. It runs before speculation, the KV dtype and the division of
    the chunk among attention groups, and sees none of them.
    """
    if a.mem_fraction_static is not None:
        return
    memory = float(site.gpu.memory_mib)
    if a.disaggregation_mode == "decode":
        requests = a.max_running_requests or a.decode_graph_max_bs or 1
        tokens = max(requests * (a.speculative_num_draft_tokens or 1), 2048)
    elif (a.chunked_prefill_size or 0) > 0:
        tokens = max(a.chunked_prefill_size or 0, 2048)
    else:
        tokens = max(a.max_prefill_tokens, 2048)
    reserved: float = 512
    reserved += tokens * 1.5
    reserved += a.tp_size * a.pp_size / 8 * 1024
    reserved += _graph_mib(a)
    if memory > 60 * 1024:
        reserved = max(reserved, 10 * 1024)
    if a.disaggregation_mode != "prefill" and a.decode_graph != "disabled" and a.moe_a2a_backend == "deepep":
        reserved += 2 * 1024
    a.reserved_mib = reserved
    fraction = round((memory - reserved) / memory, 3)
    vision = site.geometry.vision
    if a.multimodal and vision is not None and not a.language_only and a.disaggregation_mode != "decode":
        fraction *= _vision_factor(vision)
        a.because["mem_fraction_static"] = _FRACTION_IMAGES
    else:
        a.because["mem_fraction_static"] = _FRACTION
    a.mem_fraction_static = fraction


def check_fraction(a: Arguments, site: Site) -> None:
    """Refuse a card that the engine's own reserve for activations, graphs and buffers takes whole.

    The engine computes a fraction of 0 or less all the same, and finds no memory for its pools at start-up.
    Source: mem_cache/kv_cache_configurator.py:3007-3058 at 0.5.23.
    """
    if a.mem_fraction_static is None or a.mem_fraction_static > 0:
        return
    raise RefusedError(
        f"nothing of {site.gpu.memory_mib} MiB ({site.gpu.name}) is left for weights and pools: the engine reserves "
        f"{a.reserved_mib:.0f} MiB for activations, graphs and parallel buffers; give --mem-fraction-static, or lower "
        "--chunked-prefill-size or --cuda-graph-max-bs-decode",
        "arg_groups/memory_hook.py:281-337 at 0.5.23",
    )


def _graph_mib(a: Arguments) -> float:
    """MiB kept for captured graphs and attention-DP padding (arg_groups/memory_hook.py:357-402 at 0.5.23)."""
    reserved = 0.0
    decodes = a.disaggregation_mode != "prefill"
    batch = a.decode_graph_max_bs
    if decodes and a.decode_graph != "disabled":
        reserved += batch * 2
    if decodes and a.enable_dp_attention:
        reserved += batch * a.attn_dp_size * 3
        if batch > 300:
            reserved += batch * a.attn_dp_size * 1.5
    if a.disaggregation_mode != "decode" and a.prefill_graph != "disabled":
        reserved += 1.5 * 1024
        if a.prefill_graph == "breakable" and a.moe_a2a_backend == "deepep":
            reserved += 1 * 1024
    return reserved


def _vision_factor(vision: VisionGeometry) -> float:
    """0.95, lowered or raised by the vision tower\'s size against 24 layers of 1024.

    Source: arg_groups/memory_hook.py:417-462 at 0.5.23.
    """
    layers = 24 if vision.num_hidden_layers is None else vision.num_hidden_layers
    complexity = layers * vision.hidden_size**2 / (24 * 1024**2)
    return 0.95 * max(0.8, min(1.05, 1.0 - 0.1 * (complexity - 1.0)))


def aiter_workspace(a: Arguments, site: Site) -> None:
    """ROCm's aiter attention backend takes 15 % of the fraction again, for contexts above 8192."""
    if a.attention_backend != "aiter" or (a.context_length or 0) <= 8192 or a.mem_fraction_static is None:
        return
    honoured = switched_on(site.environment, "SGLANG_AITER_HONOR_EXPLICIT_MEM_FRACTION")
    if not ("mem_fraction_static" in a.given and honoured):
        a.mem_fraction_static *= 0.85
        a.because["mem_fraction_static"] = _FRACTION_AITER


def multimodal_reserve(a: Arguments, site: Site) -> None:
    """MiB set aside beside the pools for image features. Source: mem_cache/kv_cache_configurator.py:202-219 at 0.5.23,
    arg_groups/serving_hook.py:801-937 at 0.5.23 (transport).
    """
    environment, transport = site.environment, a.mm_feature_transport
    if a.keep_mm_feature_on_device:
        if transport not in (None, "cuda_ipc"):
            raise RefusedError(
                f"--keep-mm-feature-on-device is cuda_ipc, not --mm-feature-transport {transport}",
                "arg_groups/serving_hook.py:757-763 at 0.5.20",
            )
        transport = "cuda_ipc"
    if transport is None:
        ipc = switched_on(environment, "SGLANG_USE_CUDA_IPC_TRANSPORT")
        transport = "cuda_ipc" if ipc else "cpu"
    if a.given.get("encoder_only"):  # its outputs go another way (arg_groups/serving_hook.py:882-889 at 0.5.23)
        transport = "cpu"
    source = "arg_groups/serving_hook.py:892-919 at 0.5.23"
    if transport != "cpu" and site.gpu.vendor != "cuda":
        raise RefusedError(f"--mm-feature-transport {transport} runs on CUDA only", source)
    if transport == "cuda_ipc" and a.nnodes > 1:
        raise RefusedError("--mm-feature-transport cuda_ipc runs on a single node", source)
    if transport == "cuda_vmm" and a.pp_size > 1:
        raise RefusedError("--mm-feature-transport cuda_vmm does not run with pipeline stages", source)
    a.mm_feature_transport = transport
    if a.multimodal:
        a.mm_reserve_mib = megabytes(environment, "SGLANG_VLM_CACHE_SIZE_MB")
        if transport != "cpu":
            a.mm_reserve_mib += megabytes(environment, "SGLANG_MM_FEATURE_CACHE_MB")
    a.because["mm_reserve_mib"] = _RESERVE_GPU if transport != "cpu" else _RESERVE


def check_chunk(a: Arguments, site: Site) -> None:
    """A prefill chunk, after its division among attention groups, holds whole pages."""
    chunk, page = a.chunked_prefill_size or 0, a.page_size or 1
    if chunk > 0 and a.disaggregation_mode != "decode" and chunk % page:
        shared = "" if a.attn_dp_size == 1 else f" ({a.undivided_chunk_size} over {a.attn_dp_size} attention groups)"
        raise RefusedError(
            f"--chunked-prefill-size {chunk}{shared} is no multiple of the {page}-token page",
            "arg_groups/validation_hook.py:244 at 0.5.23",
        )
