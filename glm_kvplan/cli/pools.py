"""`kvplan pools`: every tensor the engine allocates on one rank."""

from typing import Annotated

import typer

from glm_kvplan.cli.answering import print_answer
from glm_kvplan.cli.option_groups import takes
from glm_kvplan.cli.options import DEPLOYMENT, Json, plan_of
from glm_kvplan.cli.workload_options import WORKLOAD, Concurrency, Confidence, read_held
from glm_kvplan.engines.by_name import answering

Context = Annotated[
    str | None,
    typer.Option(
        "--context",
        help="Context lengths (128k, a mix 80%:8k,20%:128k), where --max-total-tokens fixes no pool. [128k]",
        rich_help_panel=WORKLOAD,
        metavar="LENGTHS",
    ),
]
PpRank = Annotated[
    int | None, typer.Option("--pp-rank", help="Pipeline rank, counted from 0. [the one that takes most]")
]


@takes(*DEPLOYMENT)
def pools(
    ctx: typer.Context,
    context: Context = None,
    concurrency: Concurrency = None,
    confidence: Confidence = "0.99",
    pp_rank: PpRank = None,
    json: Json = False,
) -> None:
    """Every tensor the engine allocates on one rank: shape, dtype, bytes, and whether its budget pays.

    Example: kvplan pools --tp-size 4 --max-total-tokens 1000000 --max-mamba-cache-size 200 --max-running-requests 40
    """
    plan = plan_of(ctx)
    made = answering(plan, "pools")
    answer = made.answer(plan, read_held(plan, context, concurrency, confidence), pp_rank)
    print_answer("pools", answer, lambda: made.page(answer), json)
