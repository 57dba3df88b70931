"""One plan and its workload seen from every side, whole: the answer of `kvplan report`."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from glm_kvplan.engines.answer_head import Head
from glm_kvplan.engines.demand_shown import DemandShown, show_demand
from glm_kvplan.engines.flag import Choice
from glm_kvplan.engines.frontier_points import Frontier
from glm_kvplan.engines.ledger import Ledger
from glm_kvplan.engines.report_parts import Made
from glm_kvplan.engines.sglang.answers.advise_answer import AdviseAnswer, answer_advise
from glm_kvplan.engines.sglang.answers.estimate_answer import shortfalls
from glm_kvplan.engines.sglang.answers.plan_head import head_of
from glm_kvplan.engines.sglang.answers.solve_answer import SolveAnswer, show_start
from glm_kvplan.engines.sglang.components import rank_ledgers
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.rank import rank_of
from glm_kvplan.engines.sglang.sizing.frontier import fits, frontier
from glm_kvplan.engines.sglang.sizing.host_answer import UNKNOWN_HOST, HostGiven
from glm_kvplan.engines.sglang.sizing.prices import prices
from glm_kvplan.engines.sglang.sizing.ratio_curve import RatioCurve, ratio_curve
from glm_kvplan.engines.sglang.sizing.served_requests import Served, check_demand, served
from glm_kvplan.engines.sglang.sizing.server import Server
from glm_kvplan.engines.sglang.sizing.sizing_steps import Step, sizing_steps
from glm_kvplan.engines.sglang.sizing.start import boot
from glm_kvplan.engines.sglang.sizing.workload_cost import estimate
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.show.said import Text
from glm_kvplan.workload import Demand, Workload


class ReportAnswer(NamedTuple):
    """`start` is the plan as launched and `advised` what `kvplan advise` says of it. Where the engine refuses to
    start, `served` counts nothing, and what would be said of pools that do not exist is empty or None.

    `flags` and `environment` are those of the launch; `choices` every resolved flag with its reason.
    """

    head: Head
    demand: DemandShown
    start: SolveAnswer
    served: Served  # of the demand, by the pools as launched
    mean_served: int  # requests, if all lengths came by their shares
    span: tuple[int, int]  # requests of the demand within the memory's error
    advised: AdviseAnswer
    ledgers: tuple[Ledger, ...]  # of the pipeline stage with the least memory left
    steps: tuple[Step, ...]
    frontier: Frontier | None
    ratio: RatioCurve | None
    flags: Mapping[str, object]
    environment: Mapping[str, str]
    choices: tuple[Choice, ...]
    warnings: tuple[Text, ...]
    made: Made

    @property
    def holds(self) -> bool:
        """The demand is served on these GPUs, as launched or by the flags that are advised."""
        return self.advised.holds or self.advised.now.serves(self.demand)


def answer_report(
    plan: Plan,
    demand: Demand,
    given: MemoryGiven,
    host_given: HostGiven = UNKNOWN_HOST,
    *,
    command: str = "",
    day: str = "",
) -> ReportAnswer:
    """Everything about `plan` under this memory and workload; `command` and `day` say how it was asked.

    Raises InputError for a demand no pool serves and for unknown memory, RefusedError as `boot` does.
    """
    check_demand(demand, plan.deployment)
    host_given = host_given.serving(demand)
    found, server = boot(plan, given, demand.contexts.longest, host_given), Server(plan, given)
    starts = found.failure is None
    start = show_start(plan, found, tuple(prices(server)) if starts else None)
    advised = answer_advise(plan, demand, given, host_given=host_given)
    mean = demand._replace(contexts=demand.contexts.as_mean)
    ends = found.span if starts else (None, None)
    low, high = (0 if end is None else served(demand, plan.deployment, end).requests for end in ends)
    now = fits(plan, found, demand) if starts else Served(0, 0, "memory")
    return ReportAnswer(
        head=head_of(plan),
        demand=show_demand(demand),
        start=start,
        served=now,
        mean_served=fits(plan, found, mean).requests if starts else 0,
        span=(min(low, now.requests), max(high, now.requests)),
        advised=advised,
        ledgers=rank_ledgers(rank_of(plan, found.stage), start.sizes) if starts else (),
        steps=sizing_steps(found.solution),
        frontier=frontier(plan, found, server, demand.prefix_states) if starts else None,
        ratio=ratio_curve(found.solution, server, demand, advised.sizes) if starts else None,
        flags=plan.flags,
        environment=plan.environment,
        choices=plan.choices,
        warnings=tuple(dict.fromkeys((*start.warnings, *advised.warnings, *_short(plan, demand)))),
        made=Made(command, day),
    )


def _short(plan: Plan, demand: Demand) -> Iterator[Text]:
    """Where sizes that flags fix are smaller than requests of one length need."""
    if len(demand.contexts.lengths) == 1:
        yield from shortfalls(estimate(plan, Workload(demand.contexts.longest, demand.concurrency)))
