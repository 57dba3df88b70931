"""`kvplan explain`: one topic for the current deployment."""

from typing import Annotated

import typer

from glm_kvplan.cli.answering import print_answer
from glm_kvplan.cli.option_groups import takes
from glm_kvplan.cli.options import DEPLOYMENT, Json, asked_engine, plan_of
from glm_kvplan.cli.workload_options import WORKLOAD, Concurrency, Context, read_load, read_workload
from glm_kvplan.engines.by_name import answering, engine_answering
from glm_kvplan.errors import InputError


def _topics(ctx: typer.Context) -> list[str]:
    return [*engine_answering(asked_engine(ctx), "explain").answer(None, None, None).topics]


@takes(*DEPLOYMENT)
def explain(
    ctx: typer.Context,
    topic: Annotated[
        str | None,
        typer.Argument(metavar="[TOPIC]", help="One of the topics; none lists them.", autocompletion=_topics),
    ] = None,
    context: Context = None,
    concurrency: Concurrency = None,
    beside: Annotated[
        str | None,
        typer.Option(
            "--beside", help="Of `loads`: the other load, as 8x128k.", rich_help_panel=WORKLOAD, metavar="NxTOKENS"
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Where everything lies, nine misreadings of these caches, and two loads beside each other, in your numbers.

    Example: kvplan explain where --enable-hierarchical-cache
    """
    if context is not None and ("," in context or ":" in context):
        raise InputError(f"--context {context[:60]}: a topic is about requests of one length; give one")
    plan = plan_of(ctx)
    made = answering(plan, "explain")
    other = None if beside is None else read_load(plan, beside, "--beside")
    answer = made.answer(plan, read_workload(plan, context, concurrency), topic, other)
    print_answer("explain", answer, lambda: made.page(answer), json)
