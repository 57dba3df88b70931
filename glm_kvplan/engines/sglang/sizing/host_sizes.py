"""What HiCache allocates in host memory: by ratio, by an explicit size or by the engine's automatic rule."""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from glm_kvplan.engines.sglang.components.component import KV_SPLIT
from glm_kvplan.engines.sglang.components.host_pools import HostPool, draft_pool, index_pool, kv_pool, state_pool
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.engines.sglang.profile import EngineProfile
from glm_kvplan.engines.sglang.rank import Rank
from glm_kvplan.engines.sglang.sizing.host_devices import DevicePools, device_pools
from glm_kvplan.errors import RefusedError
from glm_kvplan.units import GIB

DEFAULT_RATIO = 2.0  # of hicache_ratio; also what a PD decode server settles on as its pools are built
RESERVE_BYTES = 10 * GIB  # left to the machine (mem_cache/pool_host/base.py:28 at 0.5.23)
SLACK_FRACTION = (
    0.05  # of the automatic budget, for what the ratio does not count (mem_cache/hicache_auto_size.py:33 at 0.5.23)
)

_CHECK = "mem_cache/pool_host/base.py:248-257 at 0.5.23"
_AUTOMATIC = "mem_cache/hicache_auto_size.py:83-125 at 0.5.23"
_LAYOUTS = {
    "layer_first": "mem_cache/pool_host/mamba.py:103-106 at 0.5.23",
    "page_head": "mem_cache/pool_host/mla.py:430 at 0.5.23",
    KV_SPLIT: "mem_cache/pool_host/mamba.py:55-58 at 0.5.20, mem_cache/pool_host/dsa.py:326 at 0.5.23",
}


class HostPlan(NamedTuple):
    """One rank's host pools, in the order the engine builds them.

    `budget_bytes` is what the engine lets a rank claim: every pool alone must fit into it, or, by the automatic
    rule, all of them together. None where the host's memory was not given.
    """

    devices: DevicePools
    pools: tuple[HostPool, ...]
    sizing: Literal["ratio", "size", "automatic"]
    ratio: float | None  # host units over device units; None for an explicit size
    split: tuple[float, float] | None  # GB for KV and for state, of an explicit size
    budget_bytes: int | None

    @property
    def nbytes(self) -> int:
        return sum(pool.nbytes for pool in self.pools)

    @property
    def staging_bytes(self) -> int:
        """Bytes on the GPU, allocated after the pools and outside the memory budget."""
        return sum(pool.staging_bytes for pool in self.pools)

    def pool(self, name: str) -> HostPool | None:
        return next((pool for pool in self.pools if pool.name == name), None)

    def bytes_of(self, name: str) -> int:
        """Bytes of one pool; 0 where this stage has none."""
        return sum(pool.nbytes for pool in self.pools if pool.name == name)


def ranks_per_host(deployment: Deployment) -> int:
    """Ranks of one engine on one host, spread evenly; further replicas are not seen by the engine.

    Source: mem_cache/pool_host/base.py:68-81 at 0.5.23.
    """
    return max(deployment.world_size // deployment.nnodes, 1)


def claimable_bytes(host_available_bytes: int, ranks: int) -> int:
    """What the engine lets one of `ranks` local ranks claim. Source: mem_cache/pool_host/base.py:86-108 at 0.5.23."""
    return (host_available_bytes - RESERVE_BYTES) // ranks


def split_size(size: int, devices: DevicePools) -> tuple[float, float]:
    """GB of `size` for KV and for state, in the proportion of their device pools (the draft's left out).

    Source: mem_cache/hybrid_cache/hybrid_pool_assembler.py:238-254 at 0.5.23.
    """
    total = devices.kv_bytes + devices.state_bytes
    return size * devices.kv_bytes / total, size * devices.state_bytes / total


def automatic_ratio(devices: Sequence[DevicePools], budget: int, requested: float = DEFAULT_RATIO) -> float:
    """The largest ratio up to `requested` whose host pools fit `budget` bytes on every pipeline stage.

    Raises RefusedError where nothing is left after the reserve.
    Source: mem_cache/hicache_auto_size.py:83-125 at 0.5.23.
    """
    ratio = min(
        min(requested, budget * (1 - SLACK_FRACTION) / (pools.kv_bytes + pools.state_bytes + pools.draft_bytes))
        for pools in devices
    )
    if ratio <= 0:
        raise RefusedError(
            "HiCache: no host memory is left after the 10 GiB reserve; set --hicache-ratio or --hicache-size",
            _AUTOMATIC,
        )
    return ratio


def sized_automatically(deployment: Deployment, profile: EngineProfile) -> bool:
    """Neither a ratio nor a size was typed, and the release lowers its default to what fits."""
    return (
        profile.hicache_automatic_ratio
        and deployment.hicache_host_memory_fraction is not None
        and deployment.hicache_size <= 0
    )


def require_layout(rank: Rank) -> None:
    """Raises RefusedError for a memory layout that one of this model's host pools does not take."""
    layout = rank.deployment.hicache_mem_layout
    if layout in ("page_first", "page_first_direct") or (layout == KV_SPLIT and rank.profile.hicache_kv_split_starts):
        return
    raise RefusedError(
        f"--hicache-mem-layout {layout}: this model's host pools take page_first or page_first_direct",
        _LAYOUTS.get(layout, ""),
    )


def require_pages(deployment: Deployment, plan: HostPlan) -> None:
    """Raises RefusedError for a KV pool laid out page by page with fewer pages than layers: the engine takes as many
    views of it as there are layers, and counts pages.
    """
    kv = plan.pool("kv")
    if deployment.hicache_mem_layout == "page_first_direct" and kv is not None and kv.pages < kv.layers:
        raise RefusedError(
            f"--hicache-mem-layout page_first_direct: the host's KV pool has {kv.pages} pages for {kv.layers} layers; "
            "fewer pages than layers end in an index error: raise --hicache-ratio or --hicache-size",
            "mem_cache/pool_host/mla.py:268-275 at 0.5.23",
        )


def build(rank: Rank, devices: DevicePools, tokens: int, slots: int) -> tuple[HostPool, ...]:
    """The host pools for `tokens` and `slots` before rounding, in the engine's order: KV, MAMBA, INDEXER, DRAFT."""
    kv = kv_pool(rank, devices.kv_layers, tokens)
    state = state_pool(devices.state_layers, devices.layer_state_bytes, slots)
    index = index_pool(rank, devices.index_layers, kv) if rank.profile.host_index_pool else None
    draft = draft_pool(rank, devices.tokens, kv)
    return tuple(pool for pool in (kv, state, index, draft) if pool is not None)


def plan_ratio(
    ranks: Sequence[Rank],
    devices: Sequence[DevicePools],
    ratio: float,
    budget: int | None = None,
    automatic: bool = False,
) -> tuple[HostPlan, ...]:
    """One plan a pipeline stage, each pool `ratio` times its device pool."""
    return tuple(
        HostPlan(
            pools,
            build(rank, pools, int(pools.tokens * ratio), int(pools.state_slots * ratio)),
            "automatic" if automatic else "ratio",
            ratio,
            None,
            budget,
        )
        for rank, pools in zip(ranks, devices, strict=True)
    )


def plan_size(
    ranks: Sequence[Rank],
    devices: Sequence[DevicePools],
    size: int,
    budget: int | None = None,
) -> tuple[HostPlan, ...]:
    """One plan a pipeline stage for `size` GB a rank; the stages agree on the smallest counts among them.

    Raises RefusedError for a stage whose share buys nothing, because it has no layer of a kind.
    Source: mem_cache/pool_host/base.py:111-152, 221-230 at 0.5.23.
    """
    splits, tokens, slots = [], [], []
    for rank, pools in zip(ranks, devices, strict=True):
        if not (pools.kv_layers and pools.state_layers):
            raise RefusedError("--hicache-size: a pipeline stage without KV or without state cannot be sized in GB")
        kv, state = split_size(size, pools)
        empty = build(rank, pools, 0, 0)
        splits.append((kv, state))
        tokens.append(int(kv * 1e9 // empty[0].bytes_per_unit))
        slots.append(int(state * 1e9 // empty[1].bytes_per_unit))
    return tuple(
        HostPlan(pools, build(rank, pools, min(tokens), min(slots)), "size", None, split, budget)
        for rank, pools, split in zip(ranks, devices, splits, strict=True)
    )


def first_over_budget(plan: HostPlan) -> tuple[HostPool, int] | None:
    """The first pool the engine would refuse, and the bytes it could still claim; None where every pool passes.

    By the automatic rule pools are booked one after another, otherwise each is checked alone.
    """
    if plan.budget_bytes is None:
        return None
    left = plan.budget_bytes
    for pool in plan.pools:
        if pool.requested_bytes > left:
            return pool, left
        if plan.sizing == "automatic":
            left -= pool.requested_bytes
    return None


def stage_plans(
    ranks: Sequence[Rank],
    sizes: PoolSizes,
    *,
    host_available_bytes: int | None = None,
    local_ranks: int | None = None,
) -> tuple[HostPlan, ...]:
    """The host pools of `ranks`, one of each pipeline stage, as the deployment's flags size them.

    `host_available_bytes` is the memory the engine reads as available on one host when it starts (bounded by the
    container where the release reads that); None skips the engine's check, and the automatic rule then stays at
    its upper limit. `local_ranks` share a host (None: the deployment's). Raises RefusedError where the engine would.
    """
    _, deployment, profile, _ = ranks[0]
    require_layout(ranks[0])
    devices = [device_pools(rank, sizes) for rank in ranks]
    budget = None
    if host_available_bytes is not None:
        budget = claimable_bytes(host_available_bytes, local_ranks or ranks_per_host(deployment))
    if deployment.hicache_size > 0:
        plans = plan_size(ranks, devices, deployment.hicache_size, budget)
    else:
        ratio = DEFAULT_RATIO if deployment.hicache_ratio is None else deployment.hicache_ratio
        automatic = sized_automatically(deployment, profile)
        if automatic and budget is not None:
            budget = int(budget * (deployment.hicache_host_memory_fraction or 0))
            ratio = automatic_ratio(devices, budget, ratio)
        plans = plan_ratio(ranks, devices, ratio, budget, automatic)
    for plan in plans:
        require_pages(deployment, plan)
        refused = first_over_budget(plan)
        if refused is not None:
            pool, left = refused
            raise RefusedError(
                f"HiCache {pool.name} pool asks for {pool.requested_bytes:,} B of host memory a rank and may claim "
                f"{left:,} B; lower --hicache-ratio or --hicache-size",
                _CHECK,
            )
    return plans


def host_pools(
    rank: Rank, sizes: PoolSizes, *, host_available_bytes: int | None = None, local_ranks: int | None = None
) -> HostPlan:
    """One rank's host pools; see `stage_plans`. It stands alone: counts agreed between stages are not taken."""
    return stage_plans((rank,), sizes, host_available_bytes=host_available_bytes, local_ranks=local_ranks)[0]
