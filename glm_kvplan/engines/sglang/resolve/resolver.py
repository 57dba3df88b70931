"""From launch flags to a deployment: every default the engine would fill in, with its reason, in the engine's order."""

from collections.abc import Mapping

from glm_kvplan.engines.flag import check_release
from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.engines.sglang.flags import FLAG, narrowed_in
from glm_kvplan.engines.sglang.profile import EngineProfile
from glm_kvplan.engines.sglang.resolve import attention, graphs, hicache, speculation, stages, unwired
from glm_kvplan.engines.sglang.resolve import disaggregation as roles
from glm_kvplan.engines.sglang.resolve import linear_attention as state
from glm_kvplan.engines.sglang.resolve import memory_fraction as memory
from glm_kvplan.engines.sglang.resolve import parallel_layout as parallel
from glm_kvplan.engines.sglang.resolve.arguments import Arguments, Site, read_arguments
from glm_kvplan.engines.sglang.resolve.start_checks import start_checks
from glm_kvplan.memory.gpu import Gpu
from glm_kvplan.model.draft import DraftModel
from glm_kvplan.model.geometry import Geometry

_NO_ENVIRONMENT: Mapping[str, str] = {}


def resolve(
    flags: Mapping[str, object],
    *,
    geometry: Geometry,
    profile: EngineProfile,
    gpu: Gpu,
    environment: Mapping[str, str] = _NO_ENVIRONMENT,
    quantization: str | None = None,
    draft: DraftModel | str | None = None,
    kernels: str | None = None,
) -> Deployment:
    """The deployment that `flags` become on `gpu` under the release of `profile`.

    `flags` holds what the user gave, under the engine's field names and already typed (None is "not given");
    `environment` the SGLANG_* switches beside it, `quantization` the method that the checkpoint's config.json names
    (None where it is not known), `kernels` the same as kernels are chosen by, `draft` the config of a draft model of
    its own, or why it cannot be read. The order of the calls below is the engine's own
    (arg_groups/pipeline.py:23-377 at 0.5.23): what a rule reads is what had been decided by then, no more.

    Raises RefusedError where the engine would not start, InputError for values that cannot be meant.
    """
    a = read_arguments(flags)
    site = Site(geometry, profile, gpu, environment, quantization, draft, kernels)
    _known_to_release(a, site)

    speculation.states_only(a)
    parallel.attention_groups(a, site)
    parallel.expert_exchange(a, site)
    hicache.ratio(a, site)
    memory.multimodality(a, site)
    roles.role(a, site)
    parallel.decode_context_parallel(a, site)
    graphs.graph_backends(a, site)
    memory.chunk_and_graph_batches(a, site)
    memory.static_fraction(a, site)

    attention.context_length(a, site)
    attention.attention_backend(a, site)
    attention.check_index(site)
    attention.page(a, site)
    parallel.context_parallel(a, site)
    graphs.context_parallel_graph(a, site)
    attention.kv_dtype(a, site)
    attention.sparse_backends(a, site)
    state.radix_strategy(a, site)
    state.sparse_head_overlap(a, site)

    memory.aiter_workspace(a, site)
    state.checkpoints(a, site)
    state.linear_backends(a, site)
    memory.breakable_prefill_batch(a, site)
    hicache.layout(a, site)
    parallel.divide_attention_groups(a, site)
    parallel.share_context_parallel_groups(a, site)
    graphs.context_parallel_graph_default(a, site)
    parallel.expert_ranks(a, site)
    stages.pipeline_overlap(a, site)
    speculation.speculation(a, site)
    state.check_ring(a, site)

    memory.multimodal_reserve(a, site)
    state.state_dtypes(a, site)
    roles.check_retraction(a, site)
    hicache.check_radix(a, site)
    unwired.unwired_pools(a, site)
    unwired.unread_flags(a, site)
    parallel.check_layout(a, site)
    stages.check_stages(a, site)
    memory.check_chunk(a, site)
    memory.check_fraction(a, site)
    attention.row_layout(a, site)
    start_checks(a, site)
    if a.disaggregation_decode_extra_slots is None:
        a.disaggregation_decode_extra_slots = 0
    return Deployment.of(a, site)


def _known_to_release(a: Arguments, site: Site) -> None:
    check_release(FLAG, a.given, narrowed_in(site.profile.base_release), site.profile.release)
