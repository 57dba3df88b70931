"""`kvplan explain`: one topic for the current deployment."""

from typing import Annotated

import typer

from glm_kvplan.answers.explain import topics
from glm_kvplan.answers.explain.location_topic import places
from glm_kvplan.cli.option_groups import takes
from glm_kvplan.cli.options import DEPLOYMENT, Json, plan_of
from glm_kvplan.cli.workload_options import Concurrency, Context, read_workload


@takes(*DEPLOYMENT)
def explain(
    ctx: typer.Context,
    topic: Annotated[
        str | None,
        typer.Argument(
            metavar="[TOPIC]", help="One of the topics; none lists them.", autocompletion=lambda: [*topics.TITLES]
        ),
    ] = None,
    context: Context = None,
    concurrency: Concurrency = None,
    json: Json = False,
) -> None:
    """Where everything lies, and nine misreadings of these caches, with this deployment's numbers.

    Example: kvplan explain where --enable-hierarchical-cache
    """
    plan = plan_of(ctx)
    if topic is not None:
        topics.check_topic(topic)
    found = topics.ground(plan, read_workload(plan, context, concurrency))
    if json:
        from glm_kvplan.show import explain_json
        from glm_kvplan.show.json_text import print_json

        if topic is None:
            print_json(explain_json.topics_document(topics.TITLES))
        elif topic == topics.WHERE:
            print_json(explain_json.where_document(plan, places(found)))
        else:
            print_json(explain_json.document(plan, topic, topics.explain(found, topic)))
        return
    from glm_kvplan.show import explain_text

    if topic is None:
        explain_text.render_topics(topics.TITLES)
    elif topic == topics.WHERE:
        explain_text.render_where(plan, places(found))
    else:
        explain_text.render(plan, topics.explain(found, topic))
