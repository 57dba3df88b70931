"""`kvplan advise`: which flags serve a workload."""

from typing import Annotated

import typer

from glm_kvplan.cli.answering import print_answer
from glm_kvplan.cli.memory_options import MEMORY
from glm_kvplan.cli.option_groups import takes
from glm_kvplan.cli.options import DEPLOYMENT, Json, plan_of
from glm_kvplan.cli.workload_options import WORKLOAD, Checkpoints, Confidence, Lengths, read_demand
from glm_kvplan.engines.engine import answering


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
    confidence: Confidence = "0.99",
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
    made = answering(plan, "advise")
    demand = read_demand(plan, context, concurrency, checkpoints, confidence)
    answer = made.answer(plan, demand, given, state_dtype)
    print_answer("advise", answer, lambda: made.page(answer), json)
    return 0 if answer.holds else 1
