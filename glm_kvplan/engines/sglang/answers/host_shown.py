"""What an answer says of HiCache's host pools: sizes, fit, coverage and hazards, whole."""

from collections.abc import Mapping
from typing import NamedTuple

from glm_kvplan.certainty import Certainty
from glm_kvplan.engines.sglang.components.host_pools import HostPool
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.sizing.host_answer import HostAnswer, HostGiven
from glm_kvplan.engines.sglang.sizing.host_coverage import Balance, Coverage
from glm_kvplan.engines.sglang.sizing.host_fit import HostFit
from glm_kvplan.engines.sglang.sizing.host_hazards import Hazard
from glm_kvplan.engines.sglang.sizing.host_sizes import RESERVE_BYTES, HostPlan


class PoolShown(NamedTuple):
    """One host pool of one rank. `bytes_all_ranks` are those of the fullest host's ranks."""

    name: str
    units: int
    pages: int
    page_size: int
    layers: int
    row_bytes: int
    bytes_per_unit: int
    nbytes: int
    bytes_all_ranks: int | None
    requested_bytes: int
    staging_bytes: int
    formula: str
    terms: Mapping[str, int]
    source: str


class SplitShown(NamedTuple):
    """GB a rank of an explicit size."""

    kv: float
    mamba: float


class StageShown(NamedTuple):
    """The host pools of one rank of a pipeline stage."""

    sizing: str
    ratio: float | None
    split_gb: SplitShown | None
    budget_bytes: int | None
    pools: tuple[PoolShown, ...]
    nbytes: int
    staging_bytes: int


class FitShown(NamedTuple):
    fits: bool
    available_bytes: int
    reserve_bytes: int
    spare_bytes: int
    refused: str | None
    largest_ratio: float | None
    largest_size: int | None


class CoverageShown(NamedTuple):
    prefix_tokens: int
    kv_prefixes: int
    state_prefixes: int
    stranded_kv_bytes: int
    stranded_state_bytes: int
    usable_prefixes: int
    fraction: float


class BalanceShown(NamedTuple):
    """The same bytes dealt out so that every prefix has both."""

    prefixes: int
    kv_bytes: int
    state_bytes: int
    state_slots: int
    max_mamba_cache_size: int
    state_share: float


class LevelShown(NamedTuple):
    """A `max_mamba_cache_size` that leads there, solved."""

    max_mamba_cache_size: int
    sizes: PoolSizes
    coverage: CoverageShown


class NeverCopied(NamedTuple):
    name: str
    title: str


class HostShown(NamedTuple):
    """`stages` has one rank of each pipeline stage, `fullest_stage` is the one that takes most."""

    given: HostGiven
    stages: tuple[StageShown, ...]
    fullest_stage: int
    packed_draft_layers: int
    bytes_per_rank: int
    bytes_by_host: tuple[int, ...]
    ranks_on_a_host: int
    never_copied: tuple[NeverCopied, ...]
    fit: FitShown | None
    coverage: CoverageShown
    balance: BalanceShown | None
    level: LevelShown | None
    hazards: tuple[Hazard, ...]
    certainty: Certainty

    @property
    def fullest(self) -> StageShown:
        """One rank of the fullest stage."""
        return self.stages[self.fullest_stage]

    @property
    def better(self) -> BalanceShown | None:
        """The balance, where it would hold more prefixes than the pools do."""
        if self.balance is None or self.balance.prefixes <= self.coverage.usable_prefixes:
            return None
        return self.balance

    @property
    def holds(self) -> bool:
        """False only where the host's memory is known and too small, or the engine refuses."""
        return self.fit is None or self.fit.fits


def show_host(answer: HostAnswer | None, certainty: Certainty = "exact") -> HostShown | None:
    """The `host` of an answer, as sure as the device pools' sizes are; None where HiCache is off."""
    if answer is None:
        return None
    everywhere = answer.pool_bytes
    return HostShown(
        given=answer.given,
        stages=tuple(
            _stage(plan, everywhere if number == answer.stage else None) for number, plan in enumerate(answer.plans)
        ),
        fullest_stage=answer.stage,
        packed_draft_layers=answer.packed_layers,
        bytes_per_rank=answer.plan.nbytes,
        bytes_by_host=answer.host_bytes,
        ranks_on_a_host=answer.ranks,
        never_copied=tuple(NeverCopied(place.name, place.title) for place in answer.never_copied),
        fit=None if answer.fit is None else _fit(answer.fit),
        coverage=_coverage(answer.coverage),
        balance=None if answer.balance is None else _balance(answer.balance),
        level=None
        if answer.level is None
        else LevelShown(answer.level.max_mamba_cache_size, answer.level.sizes, _coverage(answer.level.coverage)),
        hazards=answer.hazards,
        certainty=certainty,
    )


def _stage(plan: HostPlan, everywhere: tuple[int, ...] | None) -> StageShown:
    return StageShown(
        sizing=plan.sizing,
        ratio=plan.ratio,
        split_gb=None if plan.split is None else SplitShown(*plan.split),
        budget_bytes=plan.budget_bytes,
        pools=tuple(
            _pool(pool, None if everywhere is None else everywhere[number]) for number, pool in enumerate(plan.pools)
        ),
        nbytes=plan.nbytes,
        staging_bytes=plan.staging_bytes,
    )


def _pool(pool: HostPool, everywhere: int | None) -> PoolShown:
    account = pool.ledger.account
    return PoolShown(
        pool.name,
        pool.units,
        pool.pages,
        pool.page_size,
        pool.layers,
        pool.row_bytes,
        pool.bytes_per_unit,
        pool.nbytes,
        everywhere,
        pool.requested_bytes,
        pool.staging_bytes,
        account.formula,
        dict(pool.ledger.terms),
        account.source,
    )


def _fit(fit: HostFit) -> FitShown:
    return FitShown(
        fit.fits,
        fit.available_bytes,
        RESERVE_BYTES,
        fit.spare_bytes,
        fit.refused,
        fit.largest_ratio,
        fit.largest_size,
    )


def _coverage(found: Coverage) -> CoverageShown:
    return CoverageShown(*found, found.usable_prefixes, found.fraction)


def _balance(found: Balance) -> BalanceShown:
    return BalanceShown(*found, found.state_share)
