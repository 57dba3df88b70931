"""`kvplan advise`: which flags serve a workload."""

from typing import Annotated

import typer

from glm_kvplan.cli.memory_options import MEMORY
from glm_kvplan.cli.option_groups import takes
from glm_kvplan.cli.options import DEPLOYMENT, Json, plan_of
from glm_kvplan.cli.workload_options import WORKLOAD, Checkpoints, Lengths, read_demand
from glm_kvplan.engines.sglang.sizing.advice import advise as make_advice
from glm_kvplan.engines.sglang.sizing.advice import served_within
from glm_kvplan.engines.sglang.sizing.server import Server


@takes(*DEPLOYMENT, MEMORY)
def advise(
    ctx: typer.Context,
    context: Lengths = None,
    concurrency: Annotated[
        str,
        typer.Option(
            "--concurrency", help="Requests at once, over the whole deployment.", rich_help_panel=WORKLOAD, metavar="N"
        ),
    ] = "1",
    checkpoints: Checkpoints = 0,
    state_dtype: Annotated[
        str | None,
        typer.Option(
            "--try-state-dtype", help="Also try this mamba_ssm_dtype (accuracy is yours to judge).", metavar="DTYPE"
        ),
    ] = None,
    json: Json = False,
) -> int:
    """Which flags serve a workload on this GPU and layout, proved by solving them.

    Exit code 1: no flags do; the nearest layouts that would are listed.

    Example: kvplan advise --gpu h200 --tp-size 8 --context 0.8:8k,0.2:128k --concurrency 200
    """
    plan, given = plan_of(ctx), MEMORY.of(ctx)
    demand = read_demand(plan, context, concurrency, checkpoints)
    server = Server(plan, given)
    budget, weights = server.budget, server.weights
    answer = make_advice(
        server,
        demand,
        state_dtype=state_dtype,
        keep_fraction="mem_fraction_static" in plan.flags,
    )
    span = served_within(server, demand, answer, budget.error_gib)
    notes = () if weights is None else weights.notes
    if json:
        from glm_kvplan.show.advise_json import document
        from glm_kvplan.show.json_text import print_json

        print_json(document(plan, demand, answer, budget, span, notes))
    else:
        from glm_kvplan.show.advise_text import render

        render(plan, demand, answer, budget, span, notes)
    return 0 if answer.holds else 1
