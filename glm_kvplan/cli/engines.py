"""`kvplan engines`: the releases kvplan knows, and what differs between two of them."""

from typing import Annotated

import typer

from glm_kvplan.cli.options import Json
from glm_kvplan.engines.sglang.profile import installed_release, load_profile, releases
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
    if not compared:
        _list(json)
        return
    if len(compared) != 2:
        raise InputError("name two engines to compare, such as: kvplan engines 0.5.21 0.5.22")
    from glm_kvplan.answers.diff.engines import compare_engines

    comparison = compare_engines(load_profile(compared[0]), load_profile(compared[1]))
    if json:
        from glm_kvplan.show.engines_json import document
        from glm_kvplan.show.json_text import print_json

        print_json(document(comparison))
    else:
        from glm_kvplan.show.engines_text import render

        render(comparison)


def _list(json: bool) -> None:
    installed = installed_release()
    profiles = [load_profile(release) for release in releases()]
    if json:
        from glm_kvplan.show.engines_json import list_document
        from glm_kvplan.show.json_text import print_json

        print_json(list_document(profiles, installed))
        return
    from glm_kvplan.show.engines_text import render_list

    render_list(profiles, installed)
