"""`kvplan gpus`: the cards kvplan knows."""

import typer

from glm_kvplan.cli.options import Json
from glm_kvplan.errors import InputError
from glm_kvplan.memory.gpu import find_gpu, known_gpus


def gpus(context: typer.Context, json: Json = False) -> None:
    """The GPUs kvplan knows: memory as the driver reports it, compute capability, where that was read.

    Example: kvplan gpus
    """
    if context.obj["launch"] is not None:
        raise InputError("kvplan gpus reads no launch command; leave out -- and what follows it")
    cards = [find_gpu(name) for name in known_gpus()]
    if json:
        from glm_kvplan.show.gpus_json import document
        from glm_kvplan.show.json_text import print_json

        print_json(document(cards))
    else:
        from glm_kvplan.show.gpus_text import render

        render(cards)
