"""`kvplan reconcile`: a boot log or a running server, held against the plan."""

import sys
from typing import Annotated

import typer

from glm_kvplan.cli.answering import print_answer
from glm_kvplan.cli.options import ContainerName, Json, Launch, Model, Revision, Set, launch_given
from glm_kvplan.engines.planner import read_launch
from glm_kvplan.engines.sglang.boot_log.boot import Boot
from glm_kvplan.engines.sglang.boot_log.reconciliation import Given
from glm_kvplan.errors import InputError

_SAVE = "Save"


def reconcile(
    context: typer.Context,
    log: Annotated[
        str | None, typer.Argument(help="The server's log, plain or gzip; - for standard input.", metavar="LOG")
    ] = None,
    url: Annotated[
        str | None,
        typer.Option(
            "--url",
            help="Ask a running server instead (API key: KVPLAN_API_KEY).",
            metavar="URL",
        ),
    ] = None,
    timeout: Annotated[
        float, typer.Option("--timeout", help="Seconds to wait for --url.", min=0.1, max=600, metavar="SECONDS")
    ] = 10.0,
    boot: Annotated[
        int | None, typer.Option("--boot", help="Which start in the log, counted from 1. [the last]", min=1)
    ] = None,
    engine: Annotated[
        str | None,
        typer.Option(
            "--engine",
            help="SGLang release, `installed`, or a profile file. [the one that fits best]",
            metavar="RELEASE",
        ),
    ] = None,
    gpu: Annotated[
        str | None,
        typer.Option("--gpu", help="GPU name or NAME:MIB. [guessed from the log's memory and kernels]", metavar="NAME"),
    ] = None,
    model: Model = None,
    revision: Revision = None,
    launch: Launch = None,
    container: ContainerName = None,
    values: Set = None,
    draft_config: Annotated[
        str | None,
        typer.Option(
            "--draft-config", help="config.json of a draft model of its own: a file or a directory.", metavar="FILE"
        ),
    ] = None,
    save: Annotated[
        str | None,
        typer.Option(
            "--save",
            help="Write a deployment file with the measured memory (- prints it).",
            metavar="FILE",
            rich_help_panel=_SAVE,
        ),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace the file of --save.", rich_help_panel=_SAVE)] = False,
    json: Json = False,
) -> int:
    """Hold a server's boot log against the plan: every printed number predicted, and the verdict.

    Exit code 0: explained to rounding; 1: not explained; 2: the input cannot be used.

    Example: docker logs sglang 2>&1 | kvplan reconcile - --gpu b200 --save plan.yaml
    """
    from glm_kvplan.engines.sglang.boot_log.causes import causes
    from glm_kvplan.engines.sglang.boot_log.reconciliation import reconcile as hold

    boots, source = _boots(log, url, timeout)
    number = len(boots) if boot is None else boot
    if number > len(boots):
        raise InputError(f"--boot {number}: the log holds {len(boots)}")
    asked = launch_given(context.obj["launch"], launch, values)
    command = None if asked is None else read_launch(asked, engine, container).command
    given = Given(engine=engine, gpu=gpu, model=model, revision=revision, draft_config=draft_config)
    if command is not None:
        given = given._replace(flags=command.flags, environment=command.environment)
    answer = hold(boots[number - 1], given)
    likely = causes(answer)
    if save is not None:
        from glm_kvplan.engines.sglang.boot_log.plan_file import plan_document, to_yaml

        _save(save, to_yaml(plan_document(answer, source)), force, answer.explained)
    if save == "-":
        pass  # the file is the output
    else:
        from glm_kvplan.engines.sglang.answers.reconcile_answer import answer_reconcile
        from glm_kvplan.engines.sglang.answers.reconcile_page import reconcile_page

        told = answer_reconcile(answer, likely, number, len(boots))
        print_answer("reconcile", told, lambda: reconcile_page(told), json)
    return 0 if answer.explained else 1


def _save(path: str, text: str, force: bool, explained: bool) -> None:
    doubt = "" if explained else "; not every number is explained, so `kvplan check` may not agree with it"
    if path == "-":
        print(text, end="")
    else:
        from glm_kvplan.engines.sglang.boot_log.plan_file import save

        save(path, text, force=force)
        print(f"kvplan: wrote {path}{doubt}", file=sys.stderr)


def _boots(log: str | None, url: str | None, timeout: float) -> tuple[list[Boot], str]:
    """The starts, and what to call where they were read."""
    if url is not None and log is None:
        from glm_kvplan.engines.sglang.boot_log.server_info import read_server_info

        found = read_server_info(url, timeout)
        return [found], found.origin
    if log is None or url is not None:
        raise InputError("give a log (- for standard input) or --url, one of them")
    from glm_kvplan.engines.sglang.boot_log.reader import read_log
    from glm_kvplan.engines.sglang.boot_log.stream import Progress, read_file

    with Progress(log) as progress:
        return read_log(read_file(log, progress)), "standard input" if log == "-" else log
