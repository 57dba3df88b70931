"""`kvplan advise`: which flags serve a workload."""

from typing import Annotated

import typer

from glm_kvplan.cli.memory_options import AvailableGib, Checkpoint, DraftWeightsGib, PreGib, WeightsGib
from glm_kvplan.cli.options import Json, with_plan
from glm_kvplan.planner import Plan
from glm_kvplan.sizing.advice import advise as make_advice
from glm_kvplan.sizing.advice import served_within
from glm_kvplan.sizing.boot import MemoryGiven, memory_of, setup_of
from glm_kvplan.sizing.estimate import default_workload
from glm_kvplan.sizing.workload import Demand, contexts, parse_contexts
from glm_kvplan.units import parse_count

_PANEL = "Workload"


@with_plan
def advise(
    plan: Plan,
    context: Annotated[
        str | None,
        typer.Option(
            "--context",
            help="Context lengths: 128k, a mix 0.8:8k,0.2:128k, or a histogram file (length,count a line). [128k]",
            rich_help_panel=_PANEL,
            metavar="LENGTHS",
        ),
    ] = None,
    concurrency: Annotated[
        str,
        typer.Option(
            "--concurrency", help="Requests at once, over the whole deployment.", rich_help_panel=_PANEL, metavar="N"
        ),
    ] = "1",
    checkpoints: Annotated[
        int,
        typer.Option(
            "--checkpoints",
            help="Shared-prefix states to keep per conversation, beside a running request's own slots.",
            rich_help_panel=_PANEL,
            metavar="N",
        ),
    ] = 0,
    state_dtype: Annotated[
        str | None,
        typer.Option(
            "--try-state-dtype", help="Also try this mamba_ssm_dtype (accuracy is yours to judge).", metavar="DTYPE"
        ),
    ] = None,
    pre_gib: PreGib = None,
    available_gib: AvailableGib = None,
    weights_gib: WeightsGib = None,
    draft_weights_gib: DraftWeightsGib = None,
    checkpoint: Checkpoint = None,
    json: Json = False,
) -> int:
    """Which flags serve a workload on this GPU and layout, proved by solving them.

    Exit code 1: no flags do; the nearest layouts that would are listed.

    Example: kvplan advise --gpu h200 --tp-size 8 --context 0.8:8k,0.2:128k --concurrency 200
    """
    given = MemoryGiven(pre_gib, available_gib, weights_gib, draft_weights_gib, checkpoint)
    usual = default_workload(plan, None, None)
    lengths = contexts([(usual.context, 1)]) if context is None else parse_contexts(context)
    demand = Demand(lengths, parse_count(concurrency, "--concurrency"), checkpoints)
    setup = setup_of(plan, given)
    budget, _ = memory_of(plan, given, plan.deployment)
    answer = make_advice(
        setup,
        demand,
        state_dtype=state_dtype,
        keep_fraction="mem_fraction_static" in plan.flags,
    )
    span = served_within(setup, demand, answer, budget.error_gib)
    if json:
        from glm_kvplan.report.advise_json import document
        from glm_kvplan.report.json_text import print_json

        print_json(document(plan, demand, answer, budget, span))
    else:
        from glm_kvplan.report.advise_text import render

        render(plan, demand, answer, budget, span)
    return 0 if answer.holds else 1
