"""Everything a report shows of one plan and its workload: the library's answers, gathered."""

from typing import NamedTuple

from glm_kvplan.answers.pictures.price_steps import Step, sizing_steps
from glm_kvplan.answers.pictures.ratio_curve import RatioCurve, ratio_curve
from glm_kvplan.answers.pictures.region import Frontier, fits, frontier
from glm_kvplan.engines.component import Ledger
from glm_kvplan.engines.sglang.components import rank_ledgers
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.rank import rank_of
from glm_kvplan.engines.sglang.sizing.advice import Advice, advise
from glm_kvplan.engines.sglang.sizing.host_answer import UNKNOWN_HOST, HostGiven
from glm_kvplan.engines.sglang.sizing.prices import Price, prices
from glm_kvplan.engines.sglang.sizing.served_requests import Demand, Served, check, served
from glm_kvplan.engines.sglang.sizing.server import Server
from glm_kvplan.engines.sglang.sizing.start import Boot, boot
from glm_kvplan.memory.given import MemoryGiven


class Picture(NamedTuple):
    """One plan seen from every side. Where the engine refuses to start, `served` counts nothing, and what would have
    to be drawn of pools that do not exist is empty or None.
    """

    plan: Plan
    demand: Demand
    boot: Boot
    served: Served  # of the demand, by the pools as launched
    span: tuple[int, int]  # requests of the demand at the ends of the memory's error
    advice: Advice
    ledgers: tuple[Ledger, ...]  # of the pipeline stage with the least memory left
    steps: tuple[Step, ...]
    prices: tuple[Price, ...]
    frontier: Frontier | None
    ratio: RatioCurve | None

    @property
    def holds(self) -> bool:
        """The engine starts, survives its first long prompt and serves the whole demand; the host holds HiCache."""
        answer = self.boot
        if answer.failure is not None or answer.headroom is None or answer.headroom.verdict == "short":
            return False
        return self.served.requests >= self.demand.concurrency and (answer.host is None or answer.host.fits)


def picture(plan: Plan, demand: Demand, given: MemoryGiven, host_given: HostGiven = UNKNOWN_HOST) -> Picture:
    """Ask the library everything about `plan` under this memory and workload.

    Raises InputError for a demand no pool serves and for unknown memory, RefusedError as `boot` does.
    """
    check(demand, plan.deployment)
    if host_given.prefix_tokens is None:
        host_given = host_given._replace(prefix_tokens=max(1, round(demand.contexts.mean)))
    answer = boot(plan, given, demand.contexts.longest, host_given)
    server = Server(plan, given)
    advice = advise(server, demand)
    steps = sizing_steps(answer.solution)
    if answer.failure is not None:
        nothing = Served(0, 0, "memory")
        return Picture(plan, demand, answer, nothing, (0, 0), advice, (), steps, (), None, None)
    sizes = answer.solution.sizes
    low, high = (0 if end is None else served(demand, plan.deployment, end).requests for end in answer.span)
    return Picture(
        plan,
        demand,
        answer,
        fits(plan, answer, demand),
        (low, high),
        advice,
        rank_ledgers(rank_of(plan, answer.stage), sizes),
        steps,
        tuple(prices(server)),
        frontier(plan, answer, server, demand.checkpoints),
        ratio_curve(answer, server, demand, advice),
    )
