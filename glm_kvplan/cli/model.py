"""`kvplan model`: what the checkpoint is."""

import sys

import typer

from glm_kvplan.cli.answering import print_answer
from glm_kvplan.cli.options import Json, Model, Revision
from glm_kvplan.engines.protocol import assumed_engine, engine_answering
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
    made = engine_answering(assumed_engine(), "model")
    answer = made.answer(loaded)
    print_answer("model", answer, lambda: made.page(answer), json)
