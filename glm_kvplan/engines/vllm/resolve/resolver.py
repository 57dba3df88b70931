"""From vLLM's flags to a deployment: every value that bears on memory, with its reason."""

from collections.abc import Mapping
from types import MappingProxyType

from glm_kvplan.engines.vllm.deployment import Deployment
from glm_kvplan.engines.vllm.flags import FLAG
from glm_kvplan.engines.vllm.profile import EngineProfile
from glm_kvplan.engines.vllm.resolve import batches as running
from glm_kvplan.engines.vllm.resolve import block_size as blocks
from glm_kvplan.engines.vllm.resolve.parallel_layout import parallel_layout
from glm_kvplan.engines.vllm.resolve.site import Decisions, Site
from glm_kvplan.engines.vllm.resolve.speculation import speculation
from glm_kvplan.engines.vllm.resolve.state_cache import state_cache
from glm_kvplan.engines.vllm.resolve.token_cache import generation_of, token_cache
from glm_kvplan.engines.vllm.resolve.unplanned import unplanned
from glm_kvplan.errors import InputError
from glm_kvplan.memory.gpu import Gpu
from glm_kvplan.model.geometry import Geometry

_NO_ENVIRONMENT: Mapping[str, str] = MappingProxyType({})


def resolve(
    flags: Mapping[str, object],
    *,
    geometry: Geometry,
    profile: EngineProfile,
    gpu: Gpu,
    environment: Mapping[str, str] = _NO_ENVIRONMENT,
) -> Deployment:
    """The deployment that `flags` become on `gpu` under the release of `profile`.

    `flags` holds what the user gave, under vLLM's field names and already typed (None is "not given");
    `environment` the VLLM_ switches beside it. Raises RefusedError where vLLM would not start, InputError for
    values that cannot be meant and for what is not planned here.
    """
    given = Decisions(flags, Site(geometry, profile, gpu, environment))
    generation_of(given)
    unplanned(given)
    layout = parallel_layout(given)
    length, fitted = running.context_length(given)
    drafting = speculation(given)
    state = state_cache(given)
    tokens = token_cache(given, layout.decode_context)
    _layout(given)
    if layout.decode_context > 1 and not profile.tail_shared_by_dcp:
        given.refuse("decode context parallelism does not know the tail of the index keys", "dcp")
    seqs, batch = running.batches(given, length, batched_experts=layout.batched_experts)
    state_bytes = blocks.state_bytes(given, state.conv_dtype, state.state_dtype, layout.tensor, drafting.tokens)
    size = blocks.block_size(given, tokens, state_bytes)
    slots = blocks.tail_slots(given, size, drafting.tokens)
    mode = running.graph_mode(given)
    utilization = given.number("gpu_memory_utilization")
    given.keep("gpu_memory_utilization", utilization, "vLLM's default", "requested")
    reserved = given.site.switched("VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS", True)
    return Deployment(
        tensor_parallel_size=layout.tensor,
        data_parallel_size=layout.data,
        decode_context_parallel_size=layout.decode_context,
        nnodes=layout.hosts,
        enable_expert_parallel=layout.experts,
        all2all_backend=layout.all2all,
        kv_cache_dtype=given.text("kv_cache_dtype"),
        cache_dtype=tokens.dtype,
        mla_backend=tokens.backend.name,
        row_bytes=tokens.row_bytes,
        sized_row_bytes=tokens.sized_row_bytes,
        block_size=size,
        enable_prefix_caching=state.prefix_caching,
        conv_dtype=state.conv_dtype,
        state_dtype=state.state_dtype,
        prefill_checkpoint=state.prefill_checkpoint,
        tail_slots=slots,
        speculative_method=drafting.method,
        num_speculative_tokens=drafting.tokens,
        draft_layers=drafting.draft_layers,
        max_model_len=length,
        fits_max_model_len=fitted,
        max_num_seqs=seqs,
        max_num_batched_tokens=batch,
        full_cuda_graphs=mode.startswith("FULL"),
        cuda_graphs=mode != "NONE",
        largest_capture=running.largest_capture(given),
        gpu_memory_utilization=utilization,
        kv_cache_memory_bytes=_bytes(given, "kv_cache_memory_bytes"),
        num_gpu_blocks_override=_blocks(given),
        graphs_reserved=reserved,
        multimodal=not given.on("language_model_only"),
        mm_ipc_gpu_memory_gb=_gib(given, "mm_ipc_gpu_memory_gb"),
        cpu_offload_gb=_gib(given, "cpu_offload_gb"),
        choices=given.choices,
        warnings=tuple(given.warnings),
    )


def _layout(given: Decisions) -> None:
    """VLLM_KV_CACHE_LAYOUT, where it is set: there is one the model's backends agree on."""
    asked = given.site.environment.get("VLLM_KV_CACHE_LAYOUT")
    possible = ("BLHNC",) if given.site.profile.blocks_packed else ("LBHNC", "HND")
    if asked is not None and asked not in possible:
        given.refuse(
            f"VLLM_KV_CACHE_LAYOUT={asked[:40]}: this model's caches take {' or '.join(possible)} alone", "layout"
        )


def _bytes(given: Decisions, name: str) -> int | None:
    if given.value(name) is None:
        return None
    value = given.whole(name)
    if value:
        given.decide(name, value, "given: the blocks take exactly this; nothing is profiled", "available")
    return value or None  # 0 is "not given" to vLLM


def _blocks(given: Decisions) -> int | None:
    if given.value("num_gpu_blocks_override") is None:
        return None
    value = given.whole("num_gpu_blocks_override")
    given.decide("num_gpu_blocks_override", value, "given: so many blocks, whatever the memory")
    return value


def _gib(given: Decisions, name: str) -> float:
    value = given.number(name)
    if value < 0:
        raise InputError(f"{FLAG[name].option} {value}: must not be negative")
    return value
