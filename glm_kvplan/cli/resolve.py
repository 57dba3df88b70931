"""`kvplan resolve`: what the engine makes of the flags."""

import typer

from glm_kvplan.cli.answering import print_answer
from glm_kvplan.cli.option_groups import takes
from glm_kvplan.cli.options import DEPLOYMENT, Json, plan_of
from glm_kvplan.engines.by_name import answering


@takes(*DEPLOYMENT)
def resolve(ctx: typer.Context, json: Json = False) -> None:
    """Every flag that touches memory: its value, and why it has it.

    Example: kvplan resolve --gpu b200 -- python -m sglang.launch_server --model-path zai-org/GLM-5.3-Flash --tp 4
    """
    plan = plan_of(ctx)
    made = answering(plan, "resolve")
    answer = made.answer(plan)
    print_answer("resolve", answer, lambda: made.page(answer), json)
