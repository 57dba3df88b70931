"""`kvplan gpus`: the cards kvplan knows."""

import typer

from glm_kvplan.cli.answering import print_answer
from glm_kvplan.cli.options import Json
from glm_kvplan.errors import InputError
from glm_kvplan.memory.gpu_list import answer_gpus, gpus_page


def gpus(context: typer.Context, json: Json = False) -> None:
    """The GPUs kvplan knows: memory as the driver reports it, compute capability, where that was read.

    Example: kvplan gpus
    """
    if context.obj["launch"] is not None:
        raise InputError("kvplan gpus reads no launch command; leave out -- and what follows it")
    answer = answer_gpus()
    print_answer("gpus", answer, lambda: gpus_page(answer), json)
