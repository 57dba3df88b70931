"""`kvplan info`: what kvplan knows before anything is planned, a topic at a time."""

from typing import Annotated

import typer

from glm_kvplan.cli.answering import note, print_answer
from glm_kvplan.cli.options import Json, Model, Revision, every_release
from glm_kvplan.engines.by_name import assumed_engine, engine_answering, find_release
from glm_kvplan.errors import InputError
from glm_kvplan.reading.secret_words import quoted

_TOPICS = {
    "engines": "engine releases; with two of them what differs, in bytes",
    "gpus": "cards: memory as the driver reports it, and where that was read",
    "model": "geometry of the checkpoint (--model): layers, row widths, state shapes",
    "schema": "JSON Schema of the deployment file, for editors and validators",
}

_FILES = "kvplan check reads deployment files, kvplan solve --launch launch files"


def _names(ctx: typer.Context) -> list[str]:
    """What may follow the topic, for a shell that completes it."""
    return every_release() if ctx.params.get("topic") == "engines" else []


def info(
    ctx: typer.Context,
    topic: Annotated[
        str | None,
        typer.Argument(
            metavar="[TOPIC]",
            help=f"{', '.join(_TOPICS)}; none says what each is.",
            autocompletion=lambda: [*_TOPICS],
        ),
    ] = None,
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[A B]", help="Of engines: two to compare, releases or profile files.", autocompletion=_names
        ),
    ] = None,
    model: Model = None,
    revision: Revision = None,
    json: Json = False,
) -> None:
    """What kvplan knows: engine releases, GPUs, the model's geometry, the deployment file's schema.

    Example: kvplan info engines 0.5.21 0.5.22
    """
    if ctx.obj["launch"] is not None:
        raise InputError("kvplan info reads no launch command; leave out -- and what follows it")
    if topic is not None and topic not in _TOPICS:
        raise InputError(f"{quoted(topic)} is no topic of kvplan info; there are {', '.join(_TOPICS)}")
    if names and topic != "engines":
        raise InputError(f"{quoted(names[0])} is one argument too many for kvplan info {topic}; {_FILES}")
    if topic != "model" and not model is revision is None:
        raise InputError("--model and --revision name a checkpoint: kvplan info model --model PATH|ID")
    if topic == "engines":
        _engines(names or [], json)
    elif topic == "gpus":
        from glm_kvplan.memory.gpu_list import answer_gpus, gpus_page

        cards = answer_gpus()
        print_answer("info gpus", cards, lambda: gpus_page(cards), json)
    elif topic == "model":
        _model(ctx, model, revision, json)
    elif topic == "schema":
        from glm_kvplan.answers.check.file_schema import json_schema
        from glm_kvplan.show.json import print_json

        print_json(json_schema())
    else:
        from glm_kvplan.engines.explanation import TopicsAnswer
        from glm_kvplan.engines.explanation_pages import topics_page

        topics = TopicsAnswer(_TOPICS)
        print_answer("info", topics, lambda: topics_page(topics, how=""), json)


def _engines(compared: list[str], json: bool) -> None:
    if not compared:
        from glm_kvplan.answers.engines_answer import answer_engines
        from glm_kvplan.answers.engines_page import engines_page

        known = answer_engines()
        print_answer("info engines", known, lambda: engines_page(known), json)
        return
    if len(compared) != 2:
        raise InputError("name two engines to compare, such as: kvplan info engines 0.5.21 0.5.22")
    before, after = map(find_release, compared)
    if before.engine is not after.engine:
        raise InputError(
            f"{compared[0]} is of {before.engine.title}, {compared[1]} of {after.engine.title}; kvplan diff compares "
            "deployments of two engines"
        )
    found, page = before.engine.compare(before, after)
    print_answer("info engines A B", found, lambda: page, json)


def _model(ctx: typer.Context, name: str | None, revision: str | None, json: bool) -> None:
    from glm_kvplan.model.loader import load_model

    loaded = load_model(name, revision=revision)
    for warning in loaded.warnings:
        note(ctx, warning)
    made = engine_answering(assumed_engine(), "model")
    answer = made.answer(loaded)
    print_answer("info model", answer, lambda: made.page(answer), json)
