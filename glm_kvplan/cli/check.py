"""`kvplan check`: deployment files held against what they expect."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from glm_kvplan.cli.answering import print_answer
from glm_kvplan.cli.options import Json
from glm_kvplan.errors import InputError


class Format(StrEnum):
    """What is printed."""

    text = "text"
    json = "json"
    github = "github"
    junit = "junit"
    sarif = "sarif"
    markdown = "markdown"


def check(
    context: typer.Context,
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="Deployment files (docs/check.md), folders with *.kvplan.yaml files in them, or - for stdin.",
        ),
    ],
    format: Annotated[Format, typer.Option("--format", help="How to print the answer.")] = Format.text,
    strict: Annotated[
        bool, typer.Option("--strict", help="Warnings fail, too, unless the file tolerates them.")
    ] = False,
    engine: Annotated[
        str | None,
        typer.Option("--engine", help="Check every file under this release instead of its own.", metavar="RELEASE"),
    ] = None,
    gpu: Annotated[
        str | None, typer.Option("--gpu", help="Check every file on this GPU instead of its own.", metavar="NAME")
    ] = None,
    root: Annotated[
        Path | None,
        typer.Option(
            "--root",
            "--config-root",
            help="Folder for the files that deployment files name. [each deployment file's own; no other is read]",
            metavar="DIR",
        ),
    ] = None,
    json: Json = False,
) -> int:
    """Whether deployments start and hold what their files expect. Exit code 0: yes; 1: no; 2: a file is unusable.

    Example: kvplan check deployments/ --format github
    """
    if context.obj["launch"] is not None:
        raise InputError("kvplan check reads deployment files; put the launch command into one (launch: ...)")
    from glm_kvplan.answers.check.check_answer import answer_check
    from glm_kvplan.answers.check.check_page import check_page
    from glm_kvplan.answers.check.checking import check_files
    from glm_kvplan.answers.check.finding_words import judged

    answer = answer_check(check_files(files, engine=engine, gpu=gpu, root=root), strict)
    if json or format in (Format.text, Format.json):
        print_answer("check", answer, lambda: check_page(answer), json or format is Format.json)
    elif format is Format.sarif:
        from glm_kvplan.show.json import print_json
        from glm_kvplan.show.sarif import sarif

        print_json(sarif(judged(answer)))
    elif format is Format.junit:
        from glm_kvplan.show.junit import junit

        print(junit(judged(answer)))
    elif format is Format.github:
        from glm_kvplan.show.github import github_lines

        print("\n".join(github_lines(judged(answer))))
    else:
        from glm_kvplan.show.markdown import markdown

        print(markdown(check_page(answer)), end="")
    return answer.exit_code
