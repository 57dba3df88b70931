"""`kvplan explain`: one topic for the current deployment."""

from typing import Annotated

import typer

from glm_kvplan.cli.answering import print_answer
from glm_kvplan.cli.option_groups import takes
from glm_kvplan.cli.options import DEPLOYMENT, Json, plan_of
from glm_kvplan.cli.workload_options import Concurrency, Context, read_workload
from glm_kvplan.engines.protocol import answering, assumed_engine, engine_answering


def _topics() -> list[str]:
    return [*engine_answering(assumed_engine(), "explain").answer(None, None, None).topics]


@takes(*DEPLOYMENT)
def explain(
    ctx: typer.Context,
    topic: Annotated[
        str | None,
        typer.Argument(metavar="[TOPIC]", help="One of the topics; none lists them.", autocompletion=_topics),
    ] = None,
    context: Context = None,
    concurrency: Concurrency = None,
    json: Json = False,
) -> None:
    """Where everything lies, and nine misreadings of these caches, with this deployment's numbers.

    Example: kvplan explain where --enable-hierarchical-cache
    """
    plan = plan_of(ctx)
    made = answering(plan, "explain")
    answer = made.answer(plan, read_workload(plan, context, concurrency), topic)
    print_answer("explain", answer, lambda: made.page(answer), json)
