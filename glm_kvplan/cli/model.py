"""`kvplan model`: what the checkpoint is."""

import sys

import typer

from glm_kvplan.cli.options import Json, Model, Revision
from glm_kvplan.errors import InputError, one_line
from glm_kvplan.model.loader import load_model


def model(context: typer.Context, model: Model = None, revision: Revision = None, json: Json = False) -> None:
    """The checkpoint's geometry: layers by kind, row widths, state shapes, and where the config came from.

    Example: kvplan model --model ./GLM-5.3-Flash-NVFP4
    """
    if context.obj["launch"] is not None:
        raise InputError("kvplan model reads no launch command; name the checkpoint with --model")
    loaded = load_model(model, revision=revision)
    for warning in loaded.warnings:
        print(f"kvplan: note: {one_line(warning)}", file=sys.stderr)
    if json:
        from glm_kvplan.show.json_text import print_json
        from glm_kvplan.show.model_json import document

        print_json(document(loaded))
    else:
        from glm_kvplan.show.model_text import render

        render(loaded)
