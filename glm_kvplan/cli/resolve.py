"""`kvplan resolve`: what the engine makes of the flags."""

import typer

from glm_kvplan.cli.option_groups import takes
from glm_kvplan.cli.options import DEPLOYMENT, Json, plan_of


@takes(*DEPLOYMENT)
def resolve(ctx: typer.Context, json: Json = False) -> None:
    """Every flag that touches memory: its value, and why it has it.

    Example: kvplan resolve --gpu b200 -- python -m sglang.launch_server --model-path zai-org/GLM-5.3-Flash --tp 4
    """
    plan = plan_of(ctx)
    if json:
        from glm_kvplan.show.json_text import print_json
        from glm_kvplan.show.resolve_json import document

        print_json(document(plan))
    else:
        from glm_kvplan.show.resolve_text import render

        render(plan)
