"""`kvplan diff`: what changes between two deployments, engines or GPUs."""

from pathlib import Path
from typing import Annotated

import typer

from glm_kvplan.cli.answering import print_answer
from glm_kvplan.cli.options import Json
from glm_kvplan.errors import InputError


def diff(
    context: typer.Context,
    files: Annotated[
        list[str], typer.Argument(metavar="A [B]", help="One or two deployment files (docs/check.md); - for stdin.")
    ],
    engine: Annotated[
        list[str] | None,
        typer.Option("--engine", help="Release of both sides; given twice, of A and of B.", metavar="RELEASE"),
    ] = None,
    gpu: Annotated[
        list[str] | None, typer.Option("--gpu", help="GPU of both sides; given twice, of A and of B.", metavar="NAME")
    ] = None,
    root: Annotated[
        Path | None,
        typer.Option(
            "--root", help="Folder for the files that deployment files name. [each file's own]", metavar="DIR"
        ),
    ] = None,
    json: Json = False,
) -> None:
    """What changes from A to B in resolved flags, pools and limits, the most bytes first.

    Of two engines: what both hold of the same requests.

    Example: kvplan diff plan.kvplan.yaml --engine 0.5.21 --engine 0.5.22
    """
    if context.obj["launch"] is not None:
        raise InputError("kvplan diff reads deployment files; put the launch command into one (launch: ...)")
    if len(files) > 2:
        raise InputError(f"{len(files)} files given; kvplan diff compares two")
    engines, gpus = _pair("--engine", engine), _pair("--gpu", gpu)
    if len(files) == 1 and engines[0] == engines[1] and gpus[0] == gpus[1]:
        raise InputError("one file alone: name a second one, or two engines or GPUs (--engine A --engine B)")
    from glm_kvplan.answers.diff.diff_answer import answer_diff
    from glm_kvplan.answers.diff.diff_page import diff_page
    from glm_kvplan.answers.diff.sides import Asked, sides_of

    a, b = (
        Asked(file, *of, root) for file, of in zip((files[0], files[-1]), zip(engines, gpus, strict=True), strict=True)
    )
    answer = answer_diff(*sides_of(a, b))
    print_answer("diff", answer, lambda: diff_page(answer), json)


def _pair(option: str, values: list[str] | None) -> tuple[str | None, str | None]:
    if not values:
        return None, None
    if len(values) > 2:
        raise InputError(f"{option} is given {len(values)} times; kvplan diff compares two")
    return values[0], values[-1]
