"""`kvplan reconcile`: a boot log or a running server, held against the plan."""

import sys
from typing import Annotated

import typer

from glm_kvplan.cli.answering import print_answer
from glm_kvplan.cli.options import ContainerName, Json, Launch, Model, Revision, Set, every_release, launch_given
from glm_kvplan.engines.boot_logs import BesideLog, LoggedBoots, read_boots
from glm_kvplan.engines.by_name import NAMES, engine_answering, engine_named
from glm_kvplan.engines.launches import Launchable, launched_engine
from glm_kvplan.engines.planner import read_launch
from glm_kvplan.engines.protocol import Engine
from glm_kvplan.errors import InputError
from glm_kvplan.memory.gpu import known_gpus
from glm_kvplan.show.printable import aside

_SAVE = "Save"


def reconcile(
    context: typer.Context,
    log: Annotated[
        str | None, typer.Argument(help="The server's log, plain or gzip; - for standard input.", metavar="[LOG]")
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
            help="Release (0.5.23, vllm-0.33.0), `installed`, or a profile file. [the one that fits best]",
            metavar="RELEASE",
            autocompletion=every_release,
        ),
    ] = None,
    gpu: Annotated[
        str | None,
        typer.Option(
            "--gpu",
            help="GPU name or NAME:MIB. [guessed from the log's memory and kernels]",
            metavar="NAME",
            autocompletion=known_gpus,
        ),
    ] = None,
    model: Model = None,
    revision: Revision = None,
    launch: Launch = None,
    container: ContainerName = None,
    values: Set = None,
    draft: Annotated[
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
    asked = launch_given(context.obj["launch"], launch, values)
    (writer, boots), source = _boots(log, url, timeout, _engines(engine, asked, container))
    number = len(boots) if boot is None else boot
    if number > len(boots):
        raise InputError(f"--boot {number}: the log holds {len(boots)}")
    beside = BesideLog(engine=engine, gpu=gpu, model=model, revision=revision, draft=draft)
    if asked is not None:
        command = read_launch(asked, engine or writer.name, container).command
        beside = beside._replace(flags=command.flags, environment=command.environment)
    found = writer.reconcile(boots[number - 1], beside)
    if save is not None:
        from glm_kvplan.engines.saved_plan import to_yaml

        _save(save, to_yaml(writer.saved_plan(found, source)), force, found.explained)
    if save != "-":  # the file is the output
        made = engine_answering(writer, "reconcile")
        answer = made.answer(found, number, len(boots))
        print_answer("reconcile", answer, lambda: made.page(answer), json)
    return 0 if found.explained else 1


def _engines(named: str | None, asked: Launchable | None, container: str | None) -> list[Engine]:
    """The engines that can have written the log: the one that is named, that the launch command starts, or any."""
    prefix = (named or "").partition("-")[0]
    if prefix in NAMES:
        return [engine_named(prefix)]
    told = None if asked is None else launched_engine(asked, container)
    every = [engine_named(each) for each in (NAMES if told is None else (told,))]
    return [each for each in every if named in each.releases()] or every


def _save(path: str, text: str, force: bool, explained: bool) -> None:
    doubt = "" if explained else "; not every number is explained, so `kvplan check` may not agree with it"
    if path == "-":
        print(text, end="")
    else:
        from glm_kvplan.engines.saved_plan import save

        save(path, text, force=force)
        print(aside(f"wrote {path}{doubt}"), file=sys.stderr)


def _boots(log: str | None, url: str | None, timeout: float, engines: list[Engine]) -> tuple[LoggedBoots, str]:
    """The starts, and what to call where they were read."""
    if url is not None and log is None:
        found = engines[0].ask_server(url, timeout)
        return LoggedBoots(engines[0], [found]), found.origin
    if log is None or url is not None:
        raise InputError("give a log (- for standard input) or --url, one of them")
    from glm_kvplan.engines.log_stream import Progress

    with Progress(log) as progress:
        return read_boots(log, engines, progress), "standard input" if log == "-" else log
