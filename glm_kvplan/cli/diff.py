"""`kvplan diff`: what changes between two deployments, engines or GPUs, or since a revision of git."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glm_kvplan.cli.answer_forms import form_option, read_forms, write_forms
from glm_kvplan.cli.answering import write_answer
from glm_kvplan.cli.options import Json, Root, every_release
from glm_kvplan.errors import InputError
from glm_kvplan.memory.gpu import known_gpus

if TYPE_CHECKING:
    from glm_kvplan.show.page import Page

_FORMS = ("text", "md", "json")


def diff(
    context: typer.Context,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[A [B]]",
            help="One or two deployment files (docs/check.md); - for stdin. With --base: files and folders. [.]",
        ),
    ] = None,
    base: Annotated[
        str | None,
        typer.Option(
            "--base",
            help="Compare every deployment file with what it was in this revision of git, such as origin/main.",
            metavar="REV",
        ),
    ] = None,
    engine: Annotated[
        list[str] | None,
        typer.Option(
            "--engine",
            help="Release of both sides; given twice, of A and of B.",
            metavar="RELEASE",
            autocompletion=every_release,
        ),
    ] = None,
    gpu: Annotated[
        list[str] | None,
        typer.Option(
            "--gpu", help="GPU of both sides; given twice, of A and of B.", metavar="NAME", autocompletion=known_gpus
        ),
    ] = None,
    root: Root = None,
    formats: Annotated[list[str] | None, form_option(_FORMS)] = None,
    json: Json = False,
) -> int:
    """What changes from A to B in resolved flags, pools and limits, the most bytes first.

    Of two engines: what both hold of the same requests. With --base: what a pull request changes.

    Example: kvplan diff plan.kvplan.yaml --engine 0.5.21 --engine 0.5.22
    """
    if context.obj["launch"] is not None:
        raise InputError("kvplan diff reads deployment files; put the launch command into one (launch: ...)")
    forms = read_forms(formats or [], json, _FORMS)
    engines, gpus = _pair("--engine", engine), _pair("--gpu", gpu)
    answer: Any
    if base is None:
        command, (answer, page), code = "diff", _two(files or [], engines, gpus, root), 0
    else:
        from glm_kvplan.answers.diff.base_answer import answer_base
        from glm_kvplan.answers.diff.base_page import base_page

        command, answer = "diff --base", answer_base(base, files or ["."], engines, gpus, root)
        page, code = lambda: base_page(answer), answer.exit_code
    write_forms(forms, lambda form, stream: write_answer(command, answer, page, form, stream))
    return code


def _two(
    files: list[str], engines: tuple[str | None, str | None], gpus: tuple[str | None, str | None], root: Path | None
) -> "tuple[Any, Callable[[], Page]]":
    """Two files, or one in two ways. Raises InputError, RefusedError."""
    if len(files) > 2:
        raise InputError(f"{len(files)} files given; kvplan diff compares two")
    if not files:
        raise InputError("name one or two deployment files; or --base REV, for all of them against a revision of git")
    if len(files) == 1 and engines[0] == engines[1] and gpus[0] == gpus[1]:
        raise InputError(
            "one file alone: name a second one, or two engines or GPUs (--engine A --engine B), or --base REV"
        )
    from glm_kvplan.answers.diff.diff_answer import answer_diff
    from glm_kvplan.answers.diff.diff_page import diff_page
    from glm_kvplan.answers.diff.sides import Asked, sides_of

    a, b = (
        Asked(file, *of, root) for file, of in zip((files[0], files[-1]), zip(engines, gpus, strict=True), strict=True)
    )
    answer = answer_diff(*sides_of(a, b))
    return answer, lambda: diff_page(answer)


def _pair(option: str, values: list[str] | None) -> tuple[str | None, str | None]:
    if not values:
        return None, None
    if len(values) > 2:
        raise InputError(f"{option} is given {len(values)} times; kvplan diff compares two")
    return values[0], values[-1]
