"""`kvplan gpus`: the cards kvplan knows."""

import typer

from glm_kvplan.cli.options import Json
from glm_kvplan.engine.gpu import find_gpu, known_gpus
from glm_kvplan.errors import InputError


def gpus(context: typer.Context, json: Json = False) -> None:
    """The GPUs kvplan knows: memory as the driver reports it, compute capability, where that was read.

    Example: kvplan gpus
    """
    if context.obj["launch"] is not None:
        raise InputError("kvplan gpus reads no launch command; leave out -- and what follows it")
    cards = [find_gpu(name) for name in known_gpus()]
    if json:
        from dataclasses import asdict

        from glm_kvplan.report.json_text import print_json

        print_json({"schema": "glm-kvplan/gpus", "schema_version": 1, "gpus": [asdict(card) for card in cards]})
        return
    from rich.table import Table

    from glm_kvplan.report.console import console

    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for title in ("GPU", "MiB", "capability", "source"):
        table.add_column(title, justify="right" if title == "MiB" else "left", overflow="fold")
    for card in cards:
        table.add_row(card.name, f"{card.memory_mib:,}", f"{card.capability[0]}.{card.capability[1]}", card.source)
    console().print(table)
