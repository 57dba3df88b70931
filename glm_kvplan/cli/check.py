"""`kvplan check`: deployment files held against what they expect."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from glm_kvplan.cli.answer_forms import form_option, read_forms, write_forms
from glm_kvplan.cli.answering import write_answer
from glm_kvplan.cli.options import Json, Root, every_release
from glm_kvplan.errors import InputError
from glm_kvplan.memory.gpu import known_gpus

if TYPE_CHECKING:
    from glm_kvplan.answers.check.check_answer import CheckAnswer


class Format(StrEnum):
    """What is printed."""

    text = "text"
    json = "json"
    github = "github"
    junit = "junit"
    sarif = "sarif"
    md = "md"


def check(
    context: typer.Context,
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="FILE...",
            help="Deployment files (docs/check.md), folders with *.kvplan.yaml files in them, or - for stdin.",
        ),
    ] = None,
    formats: Annotated[list[str] | None, form_option([*Format])] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Warnings fail, too, unless the file tolerates them.")
    ] = False,
    engine: Annotated[
        str | None,
        typer.Option(
            "--engine",
            help="Check every file under this release instead of its own.",
            metavar="RELEASE",
            autocompletion=every_release,
        ),
    ] = None,
    gpu: Annotated[
        str | None,
        typer.Option(
            "--gpu", help="Check every file on this GPU instead of its own.", metavar="NAME", autocompletion=known_gpus
        ),
    ] = None,
    root: Root = None,
    json: Json = False,
) -> int:
    """Whether deployments start and hold what their files expect. Exit code 0: yes; 1: no; 2: a file is unusable.

    Example: kvplan check deployments/ --format github
    """
    if context.obj["launch"] is not None:
        raise InputError(
            "kvplan check reads deployment files; kvplan init, with the same words, writes one of a launch"
        )
    if not files:
        raise InputError("name a deployment file, or a folder with some in it; kvplan init writes one of a launch")
    forms = read_forms(formats or [], json, [*Format])
    from glm_kvplan.answers.check.check_answer import answer_check
    from glm_kvplan.answers.check.checking import check_files

    answer = answer_check(check_files(files, engine=engine, gpu=gpu, root=root), strict)
    write_forms(forms, lambda form, stream: _write(answer, form, stream))
    return answer.exit_code


def _write(answer: "CheckAnswer", form: str, stream: Any) -> None:
    """The whole answer in one form, to standard output or into a file."""
    from glm_kvplan.answers.check.check_page import check_page
    from glm_kvplan.answers.check.finding_words import judged

    if form == Format.sarif:
        from glm_kvplan.show.json import print_json
        from glm_kvplan.show.sarif import sarif

        print_json(sarif(judged(answer)), stream)
    elif form == Format.junit:
        from glm_kvplan.show.junit import junit

        print(junit(judged(answer)), file=stream)
    elif form == Format.github:
        from glm_kvplan.show.github import github_lines

        print("\n".join(github_lines(judged(answer))), file=stream)
    else:
        write_answer("check", answer, lambda: check_page(answer), form, stream)
