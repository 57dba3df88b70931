"""What the caches of a workload cost, whole: the answer of `kvplan estimate`."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from glm_kvplan.certainty import Certainty
from glm_kvplan.engines.answer_head import Head
from glm_kvplan.engines.ledger import Ledger
from glm_kvplan.engines.sglang.answers.map_shown import MapShown, show_map
from glm_kvplan.engines.sglang.answers.overrun_shown import OverrunShown, overrun_warnings, show_overrun
from glm_kvplan.engines.sglang.answers.plan_head import head_of
from glm_kvplan.engines.sglang.components.decode_overrun import decode_overrun
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.sizing.pool_map import pool_map
from glm_kvplan.engines.sglang.sizing.workload_cost import Estimate, RankEstimate, Workload, estimate
from glm_kvplan.errors import InputError
from glm_kvplan.show.format import whole
from glm_kvplan.show.said import Text, say
from glm_kvplan.units import GIB
from glm_kvplan.workload import Demand, HostGiven

if TYPE_CHECKING:
    from glm_kvplan.engines.sglang.answers.host_shown import HostShown
    from glm_kvplan.engines.sglang.sizing.host_answer import HostAnswer


class LedgerShown(NamedTuple):
    """One cost of one rank, and of all ranks that have it."""

    name: str
    title: str
    unit: str
    bytes_per_unit: int
    written_bytes_per_unit: int
    units: int
    nbytes: int
    bytes_all_ranks: int
    formula: str
    formula_in_numbers: str
    terms: Mapping[str, int]
    source: str
    charged: bool
    backed_up: bool


class DifferenceShown(NamedTuple):
    """One named share of allocated less charged."""

    name: str
    nbytes: int
    reason: str


class StageShown(NamedTuple):
    """One rank of a pipeline stage. The prices are whole: of a token in every ledger that grows with tokens."""

    layers: range
    bytes_per_token: int
    bytes_per_state_slot: int
    bytes_per_request_row: int
    ledgers: tuple[LedgerShown, ...]
    nbytes: int  # of all ledgers
    charged_bytes: int
    allocated_bytes: int
    difference: tuple[DifferenceShown, ...]
    certainty: Certainty


class MixShown(NamedTuple):
    """Several context lengths. What is needed holds with `confidence`, when each request draws its length at random.

    Beside it what is needed if all lengths came by their shares: one rank's `mean_needed_sizes`, and the device bytes
    of the fullest rank's pools and of all ranks' then.
    """

    contexts: str
    confidence: float
    mean_context: float
    mean_needed_sizes: PoolSizes
    mean_allocated_bytes: int
    mean_allocated_bytes_all_ranks: int


class RequestShown(NamedTuple):
    """One request of the workload (of a mix the longest) on a rank of the fullest stage: its tokens in whole pages, its
    slots, its rows.
    """

    tokens: int
    state_slots: int
    nbytes: int
    token_bytes: int
    state_slot_bytes: int
    row_bytes: int


class FitShown(NamedTuple):
    """The fullest rank's pools beside its weights, on the card that was named.

    Bytes that the weights leave for pools are estimated to `error_bytes`; where the weights alone do not fit, `reason`
    says so and nothing is left. `fits` is None where the estimate does not settle it.
    """

    fits: bool | None
    left_bytes: int
    error_bytes: int
    weights_bytes: int | None
    reason: str


class EstimateAnswer(NamedTuple):
    """`fit` is None where no GPU was named, `mix` for one length; of several `workload` has the longest."""

    head: Head
    workload: Workload
    mix: MixShown | None
    needed_sizes: PoolSizes
    sizes: PoolSizes
    ranks: int
    ranks_per_stage: int
    allocated_bytes_all_ranks: int
    stages: tuple[StageShown, ...]
    fullest_stage: int
    request: RequestShown
    memory_map: MapShown
    fit: FitShown | None
    host: "HostShown | None"
    decode_overrun: OverrunShown | None
    warnings: tuple[Text, ...]

    @property
    def holds(self) -> bool:
        """Whether the pools fit beside the weights of a named card, and the host pools, where there are any."""
        return (self.fit is None or self.fit.fits is not False) and (self.host is None or self.host.holds)

    @property
    def fullest(self) -> StageShown:
        return self.stages[self.fullest_stage]


def answer_estimate(plan: Plan, workload: Workload | Demand, given: HostGiven) -> EstimateAnswer:
    """What `workload` costs under `plan`. `given` is what is known of the host's memory, for HiCache."""
    found = estimate(plan, workload)
    rank = found.largest
    host, shown_host = _host(plan, found, given)
    staging = 0 if host is None else host.plan.staging_bytes
    overrun = show_overrun(decode_overrun(rank.rank, found.sizes))
    return EstimateAnswer(
        head=head_of(plan),
        workload=Workload(workload.context, workload.concurrency),
        mix=_mix(plan, workload),
        needed_sizes=found.need,
        sizes=found.sizes,
        ranks=found.ranks,
        ranks_per_stage=found.ranks_per_stage,
        allocated_bytes_all_ranks=found.allocated_everywhere,
        stages=tuple(_stage(found, each) for each in found.stages),
        fullest_stage=found.stages.index(rank),
        request=_request(plan, found, rank),
        memory_map=show_map(pool_map(plan, rank.rank, found.sizes, staging)),
        fit=None if plan.gpu_assumed else _fit(plan, rank.attribution.allocated + staging),
        host=shown_host,
        decode_overrun=overrun,
        warnings=(
            *shortfalls(found),
            *overrun_warnings(overrun),
            *(hazard.message for hazard in (() if host is None else host.hazards)),
        ),
    )


def _mix(plan: Plan, workload: Workload | Demand) -> MixShown | None:
    if isinstance(workload, Workload) or len(workload.contexts.lengths) == 1:
        return None
    contexts = workload.contexts
    mean = estimate(plan, workload.as_mean)
    return MixShown(
        contexts.text,
        contexts.confidence,
        contexts.mean,
        mean.need,
        mean.largest.attribution.allocated,
        mean.allocated_everywhere,
    )


def _fit(plan: Plan, taken: int) -> FitShown:
    """Whether `taken` bytes of pools fit beside the weights."""
    # weights are a table to read, which an answer without a card does without
    from glm_kvplan.engines.sglang.sizing.server import Server
    from glm_kvplan.memory.given import MemoryGiven

    try:
        budget = Server(plan, MemoryGiven()).budget
    except InputError as error:
        return FitShown(False, 0, 0, None, str(error))
    left, error_bytes = int(budget.available_gib * GIB), int(budget.error_gib * GIB)
    weights = budget.weights_gib
    return FitShown(
        fits=True if taken <= left - error_bytes else False if taken > left + error_bytes else None,
        left_bytes=left,
        error_bytes=error_bytes,
        weights_bytes=None if weights is None else int((weights + (budget.draft_weights_gib or 0.0)) * GIB),
        reason="",
    )


def _host(plan: Plan, found: Estimate, given: HostGiven) -> "tuple[HostAnswer | None, HostShown | None]":
    """HiCache's host pools; nothing of them is loaded where there are none."""
    if not plan.deployment.enable_hierarchical_cache:
        return None, None
    from glm_kvplan.engines.sglang.answers.host_shown import show_host
    from glm_kvplan.engines.sglang.sizing.host_answer import host_answer

    prefix = round(found.workload.mean_context)
    host = host_answer(plan, found.sizes, given._replace(prefix_tokens=prefix))
    return host, show_host(host)


def _stage(answer: Estimate, rank: RankEstimate) -> StageShown:
    found = rank.attribution
    price = rank.unit_bytes
    return StageShown(
        layers=rank.stage,
        bytes_per_token=price["token"],
        bytes_per_state_slot=price["state slot"],
        bytes_per_request_row=price["request row"],
        ledgers=tuple(_ledger(answer, ledger) for ledger in rank.ledgers),
        nbytes=sum(ledger.total for ledger in rank.ledgers),
        charged_bytes=found.charged,
        allocated_bytes=found.allocated,
        difference=tuple(DifferenceShown(part.name, part.nbytes, part.reason) for part in found.parts),
        certainty="lower bound" if rank.rank.deployment.unknown_draft else "exact",
    )


def _ledger(answer: Estimate, ledger: Ledger) -> LedgerShown:
    account = ledger.account
    return LedgerShown(
        account.name,
        account.title,
        account.unit,
        ledger.bytes_per_unit,
        ledger.written,
        ledger.units,
        ledger.total,
        answer.everywhere(account.name),
        account.formula,
        ledger.formula_in_numbers,
        dict(ledger.terms),
        account.source,
        account.charged,
        account.backed_up,
    )


def _request(plan: Plan, answer: Estimate, rank: RankEstimate) -> RequestShown:
    tokens = answer.request_tokens
    cost = rank.request_bytes(tokens)
    return RequestShown(
        tokens,
        plan.deployment.slots_per_request,
        sum(cost.values()),
        cost["token"],
        cost["state slot"],
        cost["request row"],
    )


def shortfalls(answer: Estimate) -> Iterator[Text]:
    """Where sizes that flags fix are smaller than the workload."""
    for name, need, size in zip(answer.need._fields, answer.need, answer.sizes, strict=True):
        if need > size:
            yield say(
                "the workload needs {need} {what} on a rank; the flags give {size}",
                need=whole(need),
                what=say(name.replace("_", " ")),
                size=whole(size),
            )
