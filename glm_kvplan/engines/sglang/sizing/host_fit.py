"""Whether the host pools of a whole machine fit its memory, and the largest ratio or size that does."""

from collections.abc import Sequence
from typing import NamedTuple

from glm_kvplan.bisection import largest_unbounded
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.engines.sglang.rank import Rank
from glm_kvplan.engines.sglang.sizing.host_devices import device_pools
from glm_kvplan.engines.sglang.sizing.host_sizes import (
    RESERVE_BYTES,
    HostPlan,
    claimable_bytes,
    first_over_budget,
    plan_ratio,
    plan_size,
    ranks_per_host,
    require_layout,
    stage_plans,
)
from glm_kvplan.errors import InputError, RefusedError

RATIO_STEPS = 1000  # a suggested ratio has three decimals


class HostFit(NamedTuple):
    """The host pools of every local rank against one host's memory, the engine's 10 GiB reserve taken off.

    `refused` is the engine's own refusal, which may come although the pools fit, or stay away although they do not:
    it looks at one pool of one rank at a time. `plans` are a rank's pools by pipeline stage, as sized regardless.
    `largest_ratio` and `largest_size` (GB a rank) keep both the engine and the memory content; None: none does.
    """

    plans: tuple[HostPlan, ...]
    host_bytes: tuple[int, ...]  # host pools on every host
    available_bytes: int  # on each host, after the reserve
    refused: str | None
    largest_ratio: float | None
    largest_size: int | None

    @property
    def spare_bytes(self) -> int:
        """Bytes left on the fullest host; negative by how much the pools exceed it."""
        return self.available_bytes - max(self.host_bytes)

    @property
    def fits(self) -> bool:
        return self.refused is None and self.spare_bytes >= 0


def ranks_by_host(deployment: Deployment) -> tuple[tuple[int, ...], ...]:
    """For every host, how many of its ranks hold each pipeline stage; replicas share the hosts.

    Ranks are numbered stage by stage and spread evenly over the hosts in that order.
    """
    local = ranks_per_host(deployment)
    hosts = [[0] * deployment.pp_size for _ in range(deployment.nnodes)]
    for rank in range(deployment.world_size):
        hosts[min(rank // local, deployment.nnodes - 1)][rank // deployment.tp_size] += deployment.replicas
    return tuple(tuple(host) for host in hosts)


def bytes_by_host(plans: Sequence[HostPlan], deployment: Deployment) -> tuple[int, ...]:
    """Host-pool bytes of every host; each rank keeps its own copy of what it holds, replicated rows included."""
    return tuple(
        sum(ranks * plan.nbytes for ranks, plan in zip(stages, plans, strict=True))
        for stages in ranks_by_host(deployment)
    )


def host_fit(
    ranks: Sequence[Rank],
    sizes: PoolSizes,
    *,
    host_bytes: int | None = None,
    pod_bytes: int | None = None,
) -> HostFit:
    """Check the host pools of `ranks` (one a pipeline stage) against `host_bytes` available on each host.

    A container's `pod_bytes` count where it has less.

    Either alone will do: a host left out has more than its container. The engine itself sees the container's limit
    only where the release reads it. Raises InputError without either, RefusedError for a memory layout the pools do
    not take.
    """
    _, deployment, profile, _ = ranks[0]
    require_layout(ranks[0])
    known = [size for size in (host_bytes, pod_bytes) if size is not None]
    if not known:
        raise InputError("host memory: give what is available on one host, or a container's limit")
    limit = min(known)
    seen = limit if profile.hicache_reads_cgroup else host_bytes
    refused = None
    try:
        plans = stage_plans(ranks, sizes, host_available_bytes=seen)
    except RefusedError as error:
        refused = str(error)
        plans = stage_plans(ranks, sizes)
    available = limit - RESERVE_BYTES
    devices = [device_pools(rank, sizes) for rank in ranks]
    budget = None if seen is None else claimable_bytes(seen, ranks_per_host(deployment))
    by_host = ranks_by_host(deployment)

    def content(candidates: Sequence[HostPlan]) -> bool:
        if any(first_over_budget(plan) for plan in candidates):
            return False
        totals = [plan.nbytes for plan in candidates]
        return all(
            sum(count * total for count, total in zip(host, totals, strict=True)) <= available for host in by_host
        )

    steps = largest_unbounded(lambda step: content(plan_ratio(ranks, devices, step / RATIO_STEPS, budget)))
    size = None
    if all(pools.kv_layers and pools.state_layers for pools in devices):
        size = largest_unbounded(lambda gb: content(plan_size(ranks, devices, gb, budget)))
    return HostFit(
        plans=plans,
        host_bytes=bytes_by_host(plans, deployment),
        available_bytes=available,
        refused=refused,
        largest_ratio=None if steps is None else steps / RATIO_STEPS,
        largest_size=size,
    )
