"""What can go wrong with a HiCache deployment although every number is right, as data."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from glm_kvplan.engines.sglang.components import latent_kv
from glm_kvplan.engines.sglang.components.component import KV_SPLIT
from glm_kvplan.engines.sglang.components.host_pools import row_bytes
from glm_kvplan.engines.sglang.rank import Rank
from glm_kvplan.engines.sglang.sizing.host_coverage import Coverage
from glm_kvplan.engines.sglang.sizing.host_fit import bytes_by_host
from glm_kvplan.engines.sglang.sizing.host_sizes import HostPlan, ranks_per_host
from glm_kvplan.units import GB


class Hazard(NamedTuple):
    """One thing to know before launching. `nbytes` is what it concerns, where bytes are the point."""

    kind: str
    message: str  # one line: what, and what to do
    nbytes: int | None
    source: str


def host_hazards(
    rank: Rank,
    plans: Sequence[HostPlan],
    *,
    pod_bytes: int | None = None,
    coverage: Coverage | None = None,
) -> tuple[Hazard, ...]:
    """The hazards of the plans (one of each pipeline stage; `rank` is of the first): wrong contents, tiers that do
    not match, memory.
    """
    return (
        *_draft(rank),
        *_contents(rank, plans),
        *_coverage(plans, coverage),
        *_memory(rank, plans, pod_bytes),
    )


def _draft(rank: Rank) -> Iterator[Hazard]:
    """A draft model of its own has a host pool, too: of one that is not known, nobody knows how large."""
    if rank.deployment.unknown_draft:
        yield Hazard(
            "draft_not_counted",
            "the draft model's rows are copied to the host, too: nobody knows how much beside what is counted here; "
            "give its config.json (--draft-config)",
            None,
            "mem_cache/hybrid_cache/hybrid_pool_assembler.py:1619-1654 at 0.5.23",
        )


def _contents(rank: Rank, plans: Sequence[HostPlan]) -> Iterator[Hazard]:
    geometry, deployment, profile, _ = rank
    device = latent_kv.row_bytes(geometry, deployment.kv_layout, profile)
    split = deployment.hicache_mem_layout == KV_SPLIT
    if deployment.row_scales and not profile.host_row_is_device_row and not split:
        host = geometry.latent_width
        yield Hazard(
            "scales_lost",
            f"a latent row is {device} B on the device and {host} B on the host: the FP8 scales have no "
            "copy, so what comes back cannot be whole; use bf16 or raw FP8 rows, or a release that copies whole rows",
            sum(plan.pools[0].units * plan.pools[0].layers * (device - host) for plan in plans),
            "mem_cache/hybrid_cache/hybrid_pool_assembler.py:1331-1337 at 0.5.23",
        )
    if split:
        yield Hazard(
            "no_transfer",
            f"--hicache-mem-layout {KV_SPLIT} starts, but no CUDA transfer knows it: the first backup fails; "
            "use page_first or page_first_direct",
            None,
            "mem_cache/pool_host/mla.py:765, 786, 1087, 1107 at 0.5.23",
        )
    elif not profile.host_index_pool:
        yield Hazard(
            "index_not_backed_up",
            "the DSA index has no host copy in this release: pages loaded back bring latent rows of "
            f"{row_bytes(rank)} B a layer and no index keys",
            None,
            "mem_cache/hybrid_cache/hybrid_pool_assembler.py:2022-2097 at 0.5.23",
        )


def _coverage(plans: Sequence[HostPlan], coverage: Coverage | None) -> Iterator[Hazard]:
    if coverage is not None and coverage.fraction < 1:
        yield Hazard(
            "state_tier_short",
            f"the host state tier covers {coverage.fraction:.0%} of the host KV tier at {coverage.prefix_tokens:,} "
            f"tokens a prefix ({coverage.state_prefixes:,} states, {coverage.kv_prefixes:,} prefixes): when more "
            "prefixes than states return in turn, none of them hits; give the states more of the memory",
            coverage.stranded_kv_bytes,
            "mem_cache/unified_cache/components/mamba.py:151-160 at 0.5.23",
        )
    for plan in plans:
        for pool, held in zip(plan.pools, (plan.devices.tokens, plan.devices.state_slots), strict=False):
            if pool.units <= held:
                yield Hazard(
                    "smaller_than_device",
                    f"the host {pool.name} pool ({pool.units:,}) is no larger than the device's ({held:,}) and adds "
                    "few hits; raise --hicache-ratio or --hicache-size",
                    pool.nbytes,
                    "mem_cache/pool_host/base.py:238-246 at 0.5.23",
                )
                return


def _memory(rank: Rank, plans: Sequence[HostPlan], pod_bytes: int | None) -> Iterator[Hazard]:
    _, deployment, profile, _ = rank
    total = max(bytes_by_host(plans, deployment))
    local = ranks_per_host(deployment)
    if deployment.hicache_size > 0 and local > 1:
        yield Hazard(
            "size_is_per_rank",
            f"--hicache-size {deployment.hicache_size} is GB a rank, not a host: {local} ranks take "
            f"{total / GB:.1f} GB of one host",
            total,
            "mem_cache/pool_host/base.py:221-224 at 0.5.23",
        )
    largest = max(max(pool.requested_bytes for pool in plan.pools) for plan in plans)
    if any(_passes_alone_only(plan) for plan in plans):
        yield Hazard(
            "pools_checked_alone",
            f"the engine checks one pool at a time (the largest asks for {largest / GB:.1f} GB), but a rank's pools "
            "together exceed its share of the host: start-up may pass and the kernel end the ranks",
            total,
            "mem_cache/pool_host/base.py:248-257 at 0.5.23",
        )
    if pod_bytes is not None and not profile.hicache_reads_cgroup:
        yield Hazard(
            "pod_limit_unseen",
            "this release reads the machine's free memory and not the container's limit: nothing stops the pools "
            "from exceeding it",
            total,
            "mem_cache/pool_host/base.py:51-59 at 0.5.20",
        )
    if deployment.replicas > 1:
        yield Hazard(
            "replicas_unseen",
            f"each of the {deployment.replicas} replicas sizes its pools as if it were alone on the host",
            total,
            "mem_cache/pool_host/base.py:68-81 at 0.5.23",
        )


def _passes_alone_only(plan: HostPlan) -> bool:
    return plan.budget_bytes is not None and plan.sizing != "automatic" and plan.nbytes > plan.budget_bytes
