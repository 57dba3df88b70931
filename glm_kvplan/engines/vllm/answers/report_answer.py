"""One vLLM launch and its workload seen from every side, whole: the answer of `kvplan report`."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from glm_kvplan.engines.answer_head import Head
from glm_kvplan.engines.explanation import ExplainAnswer
from glm_kvplan.engines.flag import Choice
from glm_kvplan.engines.frontier_points import Frontier
from glm_kvplan.engines.report_parts import Made
from glm_kvplan.engines.saved_plan import model_named
from glm_kvplan.engines.vllm.answers.advise_answer import AdviseAnswer, answer_advise
from glm_kvplan.engines.vllm.answers.estimate_answer import EstimateAnswer, answer_estimate
from glm_kvplan.engines.vllm.answers.explain_answer import answer_explain
from glm_kvplan.engines.vllm.answers.plan_head import head_of
from glm_kvplan.engines.vllm.answers.solve_answer import ServedShown, SolveAnswer, answer_solve
from glm_kvplan.engines.vllm.card_map import CardMap, card_map
from glm_kvplan.engines.vllm.explain.topics import TOPICS
from glm_kvplan.engines.vllm.flags import FLAG
from glm_kvplan.engines.vllm.frontier import FEWER_STATES, frontier
from glm_kvplan.engines.vllm.plan import Plan
from glm_kvplan.engines.vllm.starting import begin
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.reading.secret_words import without_userinfo
from glm_kvplan.show.said import Text
from glm_kvplan.workload import UNKNOWN_HOST, Demand, HostGiven, Workload


class ReportAnswer(NamedTuple):
    """`start` is what `kvplan solve` says of the launch, `advised` what `advise`, `cost` what `estimate` of as many
    requests of the longest context. Where the start fails, there is no map and no frontier.

    `served` is the demand's row of `start`. `beside` are the flags of the frontier's dashed line, as typed; "" where
    nothing is changed. `model` is the launch's, as it names it.
    """

    head: Head
    start: SolveAnswer
    served: ServedShown
    advised: AdviseAnswer
    cost: EstimateAnswer
    card: CardMap | None
    frontier: Frontier | None
    beside: str
    formulas: tuple[ExplainAnswer, ...]
    model: str
    flags: Mapping[str, object]
    environment: Mapping[str, str]
    choices: tuple[Choice, ...]
    warnings: tuple[Text, ...]
    made: Made

    @property
    def holds(self) -> bool:
        """The demand is served on these GPUs, as launched or by the flags that are advised."""
        return self.advised.holds


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

    Raises InputError for memory that is unknown and for prefix states, RefusedError where less is free than vLLM takes.
    """
    start = answer_solve(plan, given, mix=demand.contexts, with_prices=True)
    advised = answer_advise(plan, demand, given)
    begun = begin(plan, given)
    workload = Workload(demand.contexts.longest, demand.concurrency)
    beside = _beside(plan, advised)
    return ReportAnswer(
        head=head_of(plan),
        start=start,
        served=next(row for row in start.served if row.contexts == demand.contexts.text),
        advised=advised,
        cost=answer_estimate(plan, workload, host_given),
        card=card_map(begun, demand.contexts, demand.concurrency) if start.holds else None,
        frontier=frontier(begun, given, beside) if start.holds else None,
        beside=advised.text if beside is advised.flags else " ".join(FLAG[name].words(beside[name]) for name in beside),
        formulas=tuple(_formulas(plan, workload, start)),
        model=without_userinfo(model_named(plan)),
        flags=plan.flags,
        environment=plan.environment,
        choices=plan.choices,
        warnings=start.warnings,
        made=Made(command, day),
    )


def _formulas(plan: Plan, workload: Workload, start: SolveAnswer) -> Iterator[ExplainAnswer]:
    """The topics of `explain`; that of the boot line in the numbers of this start, as its memory is known here."""
    for name in TOPICS:
        topic = answer_explain(plan, workload, name)
        if not isinstance(topic, ExplainAnswer) or name == "memory":  # which has a table of its own
            continue
        if name == "boot-line":
            needed = plan.blocks.needed(start.printed.max_model_len)
            topic = topic._replace(numbers=f"{start.num_blocks} / {needed} * {start.printed.max_model_len}")
        yield topic


def _beside(plan: Plan, advised: AdviseAnswer) -> Mapping[str, object]:
    """What the frontier shows beside the launch: the advised flags, else fewer states a request."""
    if advised.flags and not advised.options[0].estimated:
        return advised.flags
    return FEWER_STATES if plan.deployment.enable_prefix_caching else {}
