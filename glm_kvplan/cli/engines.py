"""`kvplan engines`: the releases kvplan knows, and what differs between two of them."""

from typing import Annotated

import typer

from glm_kvplan.cli.answering import print_answer
from glm_kvplan.cli.options import Json
from glm_kvplan.engines.protocol import find_release
from glm_kvplan.errors import InputError


def engines(
    context: typer.Context,
    compared: Annotated[
        list[str] | None, typer.Argument(metavar="[A B]", help="Two engines to compare: releases or profile files.")
    ] = None,
    json: Json = False,
) -> None:
    """The engine releases kvplan knows; with two names, what differs between them for this model, in bytes.

    Example: kvplan engines 0.5.21 0.5.22
    """
    if context.obj["launch"] is not None:
        raise InputError("kvplan engines reads no launch command; name two releases to compare, or none")
    if not compared:
        from glm_kvplan.answers.engines_answer import answer_engines
        from glm_kvplan.answers.engines_page import engines_page

        known = answer_engines()
        print_answer("engines", known, lambda: engines_page(known), json)
        return
    if len(compared) != 2:
        raise InputError("name two engines to compare, such as: kvplan engines 0.5.21 0.5.22")
    before, after = map(find_release, compared)
    if before.engine is not after.engine:
        raise InputError(
            f"{compared[0]} is of {before.engine.title}, {compared[1]} of {after.engine.title}; kvplan diff compares "
            "deployments of two engines"
        )
    found, page = before.engine.compare(before, after)
    print_answer("engines-diff", found, lambda: page, json)
