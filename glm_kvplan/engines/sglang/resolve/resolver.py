"""From launch flags to a deployment: every default the engine would fill in, with its reason, in the engine's order."""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from glm_kvplan.engines.flag import Choice, Flag
from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.engines.sglang.flags import TABLE
from glm_kvplan.engines.sglang.profile import EngineProfile
from glm_kvplan.engines.sglang.resolve import attention, graphs, hicache, speculation, unwired
from glm_kvplan.engines.sglang.resolve import disaggregation as roles
from glm_kvplan.engines.sglang.resolve import linear_attention as state
from glm_kvplan.engines.sglang.resolve import memory_fraction as memory
from glm_kvplan.engines.sglang.resolve import parallel_layout as parallel
from glm_kvplan.engines.sglang.resolve.arguments import Arguments, Site, read_arguments
from glm_kvplan.errors import InputError, RefusedError
from glm_kvplan.memory.gpu import Gpu
from glm_kvplan.model.geometry import Geometry

_SHOWN = tuple(flag for flag in TABLE if flag.shown)
_NO_ENVIRONMENT: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Resolution:
    """What a launch becomes. `arguments` holds the engine's own resolved arguments, under the engine's names."""

    deployment: Deployment
    arguments: Arguments
    site: Site

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the engine would accept although it does not do what it seems to, one line each."""
        return tuple(self.arguments.warnings)

    @property
    def choices(self) -> tuple[Choice, ...]:
        """Every value that bears on memory, with its reason; built when asked for, to keep resolving fast."""
        return tuple(self._choice(flag) for flag in _SHOWN if self._matters(flag))

    def _matters(self, flag: Flag) -> bool:
        arguments = self.arguments
        if flag.name in arguments.given:
            return True
        if flag.under and not getattr(arguments, flag.under):
            return False
        return flag.name in arguments.because or flag.reason is not None

    def _choice(self, flag: Flag) -> Choice:
        arguments, name = self.arguments, flag.name
        value = getattr(arguments, flag.resolved or name)
        given = name in arguments.given and arguments.given[name] == value
        reason = arguments.because.get(name)
        if reason is None and name not in arguments.given:
            reason = flag.reason
        if reason is None or (given and name not in arguments.because):
            return Choice(name, value, given, "given", "")
        text = reason.text.format(a=arguments, gpu=self.site.gpu, profile=self.site.profile)
        return Choice(name, value, given, text, reason.source)


def resolve(
    flags: Mapping[str, object],
    *,
    geometry: Geometry,
    profile: EngineProfile,
    gpu: Gpu,
    environment: Mapping[str, str] = _NO_ENVIRONMENT,
) -> Resolution:
    """The deployment that `flags` become on `gpu` under the release of `profile`.

    `flags` holds what the user gave, under the engine's field names and already typed (None is "not given");
    `environment` the SGLANG_* switches beside it. The order of the calls below is the engine's own
    (arg_groups/pipeline.py:22-342 at 0.5.21): what a rule reads is what had been decided by then, no more.

    Raises RefusedError where the engine would not start, InputError for values that cannot be meant.
    """
    a = read_arguments(flags)
    site = Site(geometry, profile, gpu, environment)
    _known_to_release(a, site)

    parallel.attention_groups(a, site)
    hicache.ratio(a, site)
    memory.multimodality(a, site)
    roles.role(a, site)
    parallel.decode_context_parallel(a, site)
    graphs.graph_backends(a, site)
    memory.chunk_and_graph_batches(a, site)
    memory.static_fraction(a, site)

    attention.context_length(a, site)
    attention.attention_backend(a, site)
    attention.page(a, site)
    parallel.context_parallel(a, site)
    graphs.context_parallel_graph(a, site)
    attention.kv_dtype(a, site)
    attention.sparse_backends(a, site)
    state.radix_strategy(a, site)

    memory.aiter_workspace(a, site)
    state.checkpoints(a, site)
    state.linear_backends(a, site)
    memory.breakable_prefill_batch(a, site)
    hicache.layout(a, site)
    parallel.divide_attention_groups(a, site)
    parallel.share_context_parallel_groups(a, site)
    graphs.context_parallel_graph_default(a, site)
    parallel.expert_ranks(a, site)
    parallel.pipeline_overlap(a, site)
    speculation.speculation(a, site)

    memory.multimodal_reserve(a, site)
    state.state_dtypes(a, site)
    roles.check_retraction(a, site)
    hicache.check_radix(a, site)
    unwired.unwired_pools(a, site)
    unwired.unread_flags(a, site)
    parallel.check_layout(a, site)
    memory.check_chunk(a, site)
    memory.check_fraction(a, site)
    attention.row_layout(a, site)
    return Resolution(_deployment(a), a, site)


def _known_to_release(a: Arguments, site: Site) -> None:
    for name in site.profile.missing_flags.split():
        if name in a.given:
            option = name.replace("_", "-")
            raise RefusedError(f"--{option} does not exist in {site.profile.release}; leave it out")


def _deployment(a: Arguments) -> Deployment:
    if (
        a.page_size is None
        or a.chunked_prefill_size is None
        or a.mem_fraction_static is None
        or a.context_length is None
        or a.dsa_prefill_backend is None
        or a.dsa_decode_backend is None
    ):
        raise InputError("the launch flags could not be resolved; please report them")
    return Deployment(
        tp_size=a.tp_size,
        pp_size=a.pp_size,
        attn_dp_size=a.attn_dp_size,
        attn_cp_size=a.attn_cp_size,
        replicas=a.replicas,
        ep_size=a.ep_size,
        moe_dp_size=a.moe_dp_size,
        moe_dense_tp_size=a.moe_dense_tp_size,
        moe_a2a_backend=a.moe_a2a_backend,
        nnodes=a.nnodes,
        linear_attn_tp_size=a.linear_attn_tp_size,
        pipeline_partition=a.pipeline_partition,
        page_size=a.page_size,
        kv_cache_dtype=a.kv_cache_dtype,
        kv_layout=a.layout,
        dsa_prefill_backend=a.dsa_prefill_backend,
        dsa_decode_backend=a.dsa_decode_backend,
        max_total_tokens=a.max_total_tokens,
        context_length=a.context_length,
        disable_radix_cache=a.disable_radix_cache,
        mamba_radix_cache_strategy=a.mamba_radix_cache_strategy,
        disable_overlap_schedule=a.disable_overlap_schedule,
        linear_attn_backend=a.linear_attn_backend,
        mamba_conv_dtype=a.mamba_conv_dtype,
        mamba_ssm_dtype=a.state_dtype,
        mamba_full_memory_ratio=a.mamba_full_memory_ratio,
        max_mamba_cache_size=a.max_mamba_cache_size,
        skip_decode_lock=a.skip_decode_lock,
        enable_linear_replayssm_spec=a.enable_linear_replayssm_spec,
        max_running_requests=a.max_running_requests,
        chunked_prefill_size=a.chunked_prefill_size,
        max_prefill_tokens=a.max_prefill_tokens,
        decode_graph=a.decode_graph,
        decode_graph_max_bs=a.decode_graph_max_bs,
        prefill_graph=a.prefill_graph,
        prefill_graph_max_bs=a.prefill_graph_max_bs or 0,
        speculative_algorithm=a.speculative_algorithm,
        speculative_num_steps=a.speculative_num_steps,
        speculative_eagle_topk=a.speculative_eagle_topk,
        speculative_num_draft_tokens=a.speculative_num_draft_tokens,
        max_draft_tokens=a.max_draft_tokens,
        mem_fraction_static=a.mem_fraction_static,
        multimodal=a.multimodal,
        mm_reserve_mib=a.mm_reserve_mib,
        disaggregation_mode=a.disaggregation_mode,
        disaggregation_decode_extra_slots=a.disaggregation_decode_extra_slots or 0,
        enable_pd_role_switch=a.enable_pd_role_switch,
        enable_hierarchical_cache=a.enable_hierarchical_cache,
        hicache_ratio=a.hicache_ratio,
        hicache_size=a.hicache_size,
        hicache_mem_layout=a.hicache_mem_layout,
        hicache_io_backend=a.hicache_io_backend,
        hicache_host_memory_fraction=a.hicache_host_memory_fraction,
    )
