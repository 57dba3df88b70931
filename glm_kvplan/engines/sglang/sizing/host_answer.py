"""HiCache for one plan: its host pools at given device sizes, whether a host holds them, and what they are worth."""

from typing import NamedTuple

from glm_kvplan.bisection import largest_unbounded
from glm_kvplan.engines.sglang.components import locations, pool_units
from glm_kvplan.engines.sglang.components.component import Location
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.rank import rank_of, ranks
from glm_kvplan.engines.sglang.sizing.failures import FailureKind
from glm_kvplan.engines.sglang.sizing.host_coverage import Balance, Coverage, balance, coverage
from glm_kvplan.engines.sglang.sizing.host_fit import HostFit, bytes_by_host, host_fit, ranks_by_host
from glm_kvplan.engines.sglang.sizing.host_hazards import Hazard, host_hazards
from glm_kvplan.engines.sglang.sizing.host_sizes import HostPlan, stage_plans
from glm_kvplan.engines.sglang.sizing.server import Server
from glm_kvplan.workload import DEFAULT_CONTEXT
from glm_kvplan.workload import UNKNOWN_HOST as UNKNOWN_HOST
from glm_kvplan.workload import HostGiven as HostGiven


class Level(NamedTuple):
    """A `max_mamba_cache_size` (global) with which a host's two tiers hold equally many prefixes, proved by solving."""

    max_mamba_cache_size: int
    sizes: PoolSizes  # of one rank, with it
    coverage: Coverage


class HostAnswer(NamedTuple):
    """The host pools of every pipeline stage's rank. `fit` is None where nothing is known of the host's memory."""

    plans: tuple[HostPlan, ...]  # one a pipeline stage
    stage: int  # the stage whose ranks take the most
    packed_layers: int  # draft layers that this stage's token pools carry beside the target's
    hosts: tuple[tuple[int, ...], ...]  # for every host, its ranks of each stage, replicas included
    host_bytes: tuple[int, ...]  # host pools on every host
    given: HostGiven
    fit: HostFit | None
    coverage: Coverage
    balance: Balance | None  # for pools given by hand; None where it leaves no request, or `level` replaces it
    level: Level | None
    never_copied: tuple[Location, ...]
    hazards: tuple[Hazard, ...]

    @property
    def plan(self) -> HostPlan:
        """One rank of the fullest stage."""
        return self.plans[self.stage]

    @property
    def ranks(self) -> int:
        """Ranks on the fullest host, replicas included."""
        return sum(self.hosts[self.fullest])

    @property
    def fullest(self) -> int:
        """The host whose ranks take the most."""
        return max(range(len(self.hosts)), key=self.host_bytes.__getitem__)

    @property
    def pool_bytes(self) -> tuple[int, ...]:
        """Bytes on the fullest host of each of `plan`'s pools, over all ranks there."""
        stages = list(zip(self.hosts[self.fullest], self.plans, strict=True))
        return tuple(sum(ranks * plan.bytes_of(pool.name) for ranks, plan in stages) for pool in self.plan.pools)

    @property
    def fits(self) -> bool:
        """False only where the host's memory is known and too small, or the engine refuses."""
        return self.fit is None or self.fit.fits

    @property
    def better(self) -> Balance | None:
        """The balance, where it would hold more prefixes than the pools do."""
        if self.balance is None or self.balance.prefixes <= self.coverage.usable_prefixes:
            return None
        return self.balance


def level(server: Server, answer: HostAnswer) -> Level | None:
    """The fewest state slots whose host tier matches the KV tier that the engine then sizes.

    More slots leave fewer tokens, so the tiers meet once. The ratio stays the one `answer` has. None where no number
    of slots holds more whole prefixes than `answer` does.
    """
    prefix = answer.coverage.prefix_tokens

    def with_slots(slots: int) -> Level | FailureKind:
        flag = slots * server.deployment.attn_dp_size
        other = server.with_flags(max_mamba_cache_size=flag)
        if other.failed is not None and other.failed.failure is not None:
            return other.failed.failure
        deployment = other.deployment.with_values(hicache_ratio=answer.plan.ratio)
        plans = stage_plans(tuple(rank._replace(deployment=deployment) for rank in other.ranks), other.sizes)
        return Level(flag, other.sizes, coverage(plans[answer.stage], prefix))

    def short_of_states(slots: int) -> bool:
        found = with_slots(slots)
        if not isinstance(found, Level):
            return found == "no_requests"  # fewer slots than one request takes; other failures are too many
        return found.coverage.state_prefixes < found.coverage.kv_prefixes

    most = largest_unbounded(short_of_states) or 0
    tried = [found for found in map(with_slots, (most, most + 1)) if isinstance(found, Level)] if most else []
    best = max(tried, key=lambda found: found.coverage.usable_prefixes, default=None)
    if best is None or best.coverage.usable_prefixes <= answer.coverage.usable_prefixes:
        return None
    return best


def host_answer(plan: Plan, sizes: PoolSizes, given: HostGiven) -> HostAnswer | None:
    """The host pools beside device pools of `sizes` (one rank's); None where HiCache is off.

    Raises RefusedError for a layout or split the host pools do not take; too little memory is told by `fit`.
    """
    deployment = plan.deployment
    if not deployment.enable_hierarchical_cache:
        return None
    fit, stages = None, ranks(plan)
    if given.host_bytes is None and given.pod_bytes is None:
        plans = stage_plans(stages, sizes)
    else:
        fit = host_fit(stages, sizes, host_bytes=given.host_bytes, pod_bytes=given.pod_bytes)
        plans = fit.plans
    stage = max(range(len(plans)), key=lambda number: plans[number].nbytes)
    prefix = given.prefix_tokens or min(DEFAULT_CONTEXT, deployment.context_length)
    covered, balanced = coverage(plans[stage], prefix), balance(plans[stage], deployment, prefix)
    return HostAnswer(
        plans=plans,
        stage=stage,
        packed_layers=pool_units.draft_layers(stages[stage]),
        hosts=ranks_by_host(deployment),
        host_bytes=bytes_by_host(plans, deployment),
        given=given,
        fit=fit,
        coverage=covered,
        balance=balanced if balanced.state_slots >= deployment.slots_per_request else None,
        level=None,
        never_copied=tuple(place for place in locations(rank_of(plan, stage)) if place.host_pool is None),
        hazards=host_hazards(stages[0], plans, pod_bytes=given.pod_bytes, coverage=covered),
    )
