"""`kvplan estimate`: what the caches cost."""

from typing import Annotated

import typer

from glm_kvplan.cli.options import Json, with_plan
from glm_kvplan.planner import Plan
from glm_kvplan.sizing.estimate import Workload
from glm_kvplan.sizing.estimate import estimate as make_estimate
from glm_kvplan.units import parse_count

_WORKLOAD = "Workload"


@with_plan
def estimate(
    plan: Plan,
    context: Annotated[
        str, typer.Option("--context", help="Tokens of one request: 131072, 128k, 1m.", rich_help_panel=_WORKLOAD)
    ] = "128k",
    concurrency: Annotated[
        str,
        typer.Option("--concurrency", help="Requests at once, over the whole deployment.", rich_help_panel=_WORKLOAD),
    ] = "1",
    explain: Annotated[bool, typer.Option("--explain", help="Every number's formula, values and source.")] = False,
    json: Json = False,
) -> None:
    """What the caches cost: per token, per state slot, per request, per rank and in total.

    Example: kvplan estimate --tp-size 8 --dp-size 8 --enable-dp-attention --kv-cache-dtype fp8_e4m3
    --context 128k --concurrency 64
    """
    workload = Workload(parse_count(context, "--context"), parse_count(concurrency, "--concurrency"))
    answer = make_estimate(plan, workload)
    if json:
        from glm_kvplan.report.estimate_json import document
        from glm_kvplan.report.json_text import print_json

        print_json(document(plan, answer))
    else:
        from glm_kvplan.report.estimate_text import render

        render(plan, answer, explain=explain)
