"""What the engine sizes on a GPU, whole: the answer of `kvplan solve`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from glm_kvplan.certainty import Certainty
from glm_kvplan.engines.answer_head import Head
from glm_kvplan.engines.sglang.answers.map_shown import MapShown, show_map
from glm_kvplan.engines.sglang.answers.overrun_shown import OverrunShown, overrun_warnings, show_overrun
from glm_kvplan.engines.sglang.answers.plan_head import head_of
from glm_kvplan.engines.sglang.components.decode_overrun import decode_overrun
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.rank import rank_of
from glm_kvplan.engines.sglang.sizing.binding_limits import Limit, Limits
from glm_kvplan.engines.sglang.sizing.failures import SizingError
from glm_kvplan.engines.sglang.sizing.headroom import Headroom
from glm_kvplan.engines.sglang.sizing.prices import Price, prices
from glm_kvplan.engines.sglang.sizing.rank_costs import Costs
from glm_kvplan.engines.sglang.sizing.remedies import Remedy
from glm_kvplan.engines.sglang.sizing.served_requests import Served, served
from glm_kvplan.engines.sglang.sizing.server import Server
from glm_kvplan.engines.sglang.sizing.start import Boot, boot
from glm_kvplan.engines.sglang.sizing.transients import Transient, Transients
from glm_kvplan.memory.budget import MemoryBudget
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.show.said import Text
from glm_kvplan.workload import DEFAULT_CONTEXT, UNKNOWN_HOST, Demand, HostGiven

if TYPE_CHECKING:
    from glm_kvplan.contexts import Contexts
    from glm_kvplan.engines.sglang.answers.host_shown import HostShown


class LimitsShown(NamedTuple):
    """Bounds, the tightest first; what fixed the state slots; the tokens one slot's bytes would buy."""

    tokens: tuple[Limit, ...]
    requests: tuple[Limit, ...]
    state_slots: Limit
    tokens_per_slot: float


class NeedsShown(NamedTuple):
    """What serving needs while a prompt of `prompt_tokens` is prefilled."""

    prompt_tokens: int
    largest_context: int | None
    nbytes: int
    unsure_bytes: int
    items: tuple[Transient, ...]


class HeadroomShown(NamedTuple):
    verdict: str
    free_bytes: int
    needed_bytes: int
    message: Text


class FailureShown(NamedTuple):
    """`message` is the reason with its source."""

    kind: str
    reason: str
    source: str
    message: str
    missing_bytes: int


class MixShown(NamedTuple):
    """Requests of a length or of a mix of them at once, in the whole deployment; `limit` is what ends them.

    `requests` hold with `confidence` when each draws its length at random, `mean_requests` if all came by their shares.
    """

    contexts: str
    mixed: bool
    confidence: float
    longest: int
    requests: int
    mean_requests: int
    low: int
    high: int
    limit: str


class SolveAnswer(NamedTuple):
    """Where the engine refuses, `failure` is set, `limits`, `memory_map`, `needs` and `headroom` are None, and the
    sizes stop at the failing step.
    """

    head: Head
    memory: MemoryBudget
    max_total_num_tokens: int
    max_mamba_cache_size: int
    max_running_requests: int
    sizes: PoolSizes
    span: tuple[PoolSizes | None, PoolSizes | None]
    steps: Mapping[str, object]
    costs: Costs
    certainty: Certainty
    failure: FailureShown | None
    remedies: tuple[Remedy, ...]
    limits: LimitsShown | None
    memory_map: MapShown | None
    needs: NeedsShown | None
    headroom: HeadroomShown | None
    host: "HostShown | None"
    decode_overrun: OverrunShown | None
    prices: tuple[Price, ...] | None
    served: MixShown | None
    warnings: tuple[Text, ...]

    @property
    def holds(self) -> bool:
        """Whether it starts: nothing refuses it, the card has its pools, and the host has HiCache's."""
        allocated = self.headroom is None or self.headroom.free_bytes >= 0
        return self.failure is None and allocated and (self.host is None or self.host.holds)

    def within(self, place: int) -> tuple[int | None, int]:
        """The least and the most of one of `sizes` within the memory's error; None: it is refused at an end.

        State slots are whole, so the middle may have fewer tokens than either end.
        """
        ends = [None if end is None else end[place] for end in self.span]
        found = [self.sizes[place], *(end for end in ends if end is not None)]
        return None if None in ends else min(found), max(found)


def answer_solve(
    plan: Plan,
    given: MemoryGiven,
    prompt_tokens: int | None = None,
    host_given: HostGiven = UNKNOWN_HOST,
    *,
    mix: "Contexts | None" = None,
    with_prices: bool = False,
) -> SolveAnswer:
    """Start `plan` with this memory; see `start.boot`. `mix` are contexts to count requests of, without it the usual
    one; `with_prices`: the price list too, where it starts.
    """
    found = boot(plan, given, prompt_tokens, host_given)
    priced = tuple(prices(Server(plan, given))) if with_prices and found.failure is None else None
    return show_start(plan, found, priced, mix)


def show_start(
    plan: Plan, found: Boot, priced: tuple[Price, ...] | None = None, mix: "Contexts | None" = None
) -> SolveAnswer:
    """The answer of a start that is known already."""
    solution, overrun = found.solution, None
    if found.failure is None:
        overrun = show_overrun(decode_overrun(rank_of(plan, found.stage), solution.sizes))
    certainty = found.budget.certainty
    return SolveAnswer(
        head=head_of(plan),
        memory=found.budget,
        max_total_num_tokens=solution.tokens,
        max_mamba_cache_size=solution.state_slots,
        max_running_requests=solution.running_requests,
        sizes=solution.sizes,
        span=found.span,
        steps={name: value for name, value in solution._asdict().items() if name not in ("costs", "failure")},
        costs=solution.costs,
        certainty=certainty,
        failure=None if found.failure is None else _failure(found.failure),
        remedies=found.remedies,
        limits=None if found.limits is None else _limits(found.limits),
        memory_map=None if found.map is None else show_map(found.map),
        needs=None if found.needs is None else _needs(found.needs),
        headroom=None if found.headroom is None else _headroom(found.headroom),
        host=_host(found, certainty),
        decode_overrun=overrun,
        prices=priced,
        served=None if found.failure is not None else _served(plan, found, mix or _usual(plan)),
        warnings=(
            *found.weight_notes,
            *overrun_warnings(overrun),
            *(hazard.message for hazard in (() if found.host is None else found.host.hazards)),
        ),
    )


def _host(found: Boot, certainty: Certainty) -> "HostShown | None":
    """HiCache's host pools; nothing of them is loaded where there are none."""
    if found.host is None:
        return None
    from glm_kvplan.engines.sglang.answers.host_shown import show_host

    return show_host(found.host, certainty)


def _usual(plan: Plan) -> "Contexts":
    from glm_kvplan.contexts import Contexts

    return Contexts((min(DEFAULT_CONTEXT, plan.context_length),), (1,))


def _served(plan: Plan, found: Boot, mix: "Contexts") -> MixShown:
    """As many requests as the pools hold, by them and at the ends of what they may be."""

    def of(sizes: PoolSizes, contexts: "Contexts" = mix) -> Served:
        workers = plan.deployment.attn_dp_size * plan.deployment.replicas
        return served(Demand(contexts, sizes.running_requests * workers), plan.deployment, sizes)

    low, high = (0 if end is None else of(end).requests for end in found.span)
    now, mean = of(found.solution.sizes), of(found.solution.sizes, mix.as_mean)
    limit = "running requests" if now.limit == "concurrency" else now.limit
    return MixShown(
        mix.text, len(mix.lengths) > 1, mix.confidence, mix.longest, now.requests, mean.requests, low, high, limit
    )


def _failure(failure: SizingError) -> FailureShown:
    return FailureShown(failure.kind, failure.reason, failure.source, str(failure), failure.missing_bytes)


def _limits(limits: Limits) -> LimitsShown:
    return LimitsShown(limits.tokens, limits.requests, limits.slots, limits.tokens_per_slot)


def _needs(needs: Transients) -> NeedsShown:
    return NeedsShown(needs.prompt_tokens, needs.largest_context, needs.nbytes, needs.unsure_bytes, needs.items)


def _headroom(found: Headroom) -> HeadroomShown:
    return HeadroomShown(found.verdict, found.usable, found.needed, found.message)
