"""The host's side of a check: whether the HiCache pools fit, and what to know about them."""

from typing import NamedTuple

from glm_kvplan.engines.expectations import Change, Judgement
from glm_kvplan.engines.sglang.checks.trial import flags_changed
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.rank import rank_of, ranks
from glm_kvplan.engines.sglang.sizing.host_fit import HostFit, host_fit
from glm_kvplan.engines.sglang.sizing.host_hazards import Hazard, host_hazards
from glm_kvplan.engines.sglang.sizing.host_sizes import RESERVE_BYTES
from glm_kvplan.errors import RefusedError
from glm_kvplan.units import GIB


class HostAnswer(NamedTuple):
    """`judgement` of the host pools with the changes that would make them fit, and the hazards around them."""

    judgement: Judgement
    changes: tuple[Change, ...]
    hazards: tuple[Hazard, ...]


def judge_host(plan: Plan, sizes: PoolSizes, host_gib: float | None, pod_gib: float | None) -> HostAnswer:
    """The host pools of every rank of one host against its memory. One of the two must be given.

    Raises InputError through the sizing for counts that cannot be; a layout the engine refuses falls short.
    """
    deployment = plan.deployment
    if not deployment.enable_hierarchical_cache:
        return HostAnswer(Judgement("host_memory", True, "fits", "no host pools", "", "HiCache is off"), (), ())
    host, pod = (None if gib is None else int(gib * GIB) for gib in (host_gib, pod_gib))
    try:
        fit = host_fit(ranks(plan), sizes, host_bytes=host, pod_bytes=pod)
    except RefusedError as error:
        return HostAnswer(Judgement("host_memory", False, "fits", "refused", "layout", str(error)), (), ())
    hazards = host_hazards(rank_of(plan), fit.plans, pod_bytes=pod)
    asked, available = max(fit.host_bytes) / GIB, fit.available_bytes / GIB
    why = (
        f"the host pools of a host take {asked:.1f} GiB; after the engine's reserve of {RESERVE_BYTES / GIB:g} GiB "
        f"there are {available:.1f}"
    )
    if fit.refused:
        why += f"; the engine refuses: {fit.refused}"
    binds = "container limit" if pod is not None and (host is None or pod <= host) else "host memory"
    found = "fits" if fit.fits else f"{asked:.1f} GiB of {available:.1f}"
    return HostAnswer(Judgement("host_memory", fit.fits, "fits", found, binds, why), _changes(plan, fit), hazards)


def _changes(plan: Plan, fit: HostFit) -> tuple[Change, ...]:
    """The largest size or ratio that fits: the one the flags use first."""
    if fit.fits:
        return ()
    ratio = (
        None if fit.largest_ratio is None else flags_changed({"hicache_ratio": fit.largest_ratio, "hicache_size": None})
    )
    size = None if fit.largest_size is None else flags_changed({"hicache_size": fit.largest_size})
    ordered = (size, ratio) if plan.deployment.hicache_size > 0 else (ratio, size)
    return tuple(each for each in ordered if each is not None)
