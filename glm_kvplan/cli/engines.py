"""`kvplan engines`: the releases kvplan knows, and what differs between two of them."""

from typing import Annotated

import typer

from glm_kvplan.cli.answering import print_answer
from glm_kvplan.cli.options import Json
from glm_kvplan.engines.sglang.profile import load_profile
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
        raise InputError("kvplan engines reads no launch command; name two engines to compare, or none")
    from glm_kvplan.engines.sglang.answers.engines_answer import answer_engines, comparison_page, engines_page

    if not compared:
        known = answer_engines()
        print_answer("engines", known, lambda: engines_page(known), json)
        return
    if len(compared) != 2:
        raise InputError("name two engines to compare, such as: kvplan engines 0.5.21 0.5.22")
    from glm_kvplan.engines.sglang.answers.release_comparison import compare_engines

    found = compare_engines(load_profile(compared[0]), load_profile(compared[1]))
    print_answer("engines-diff", found, lambda: comparison_page(found), json)
