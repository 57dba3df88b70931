"""The options that describe a deployment, the same on every command that needs one."""

import sys
from typing import TYPE_CHECKING, Annotated, NamedTuple

import typer

from glm_kvplan.cli import DEPLOYMENT_PANEL
from glm_kvplan.cli.option_groups import FlagGroup, OptionGroup
from glm_kvplan.engines.engine import Given, assumed_engine
from glm_kvplan.engines.planner import given
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.profile import BASELINE, installed_release, load_profile, releases
from glm_kvplan.errors import InputError
from glm_kvplan.memory.gpu import known_gpus

if TYPE_CHECKING:
    from glm_kvplan.engines.sglang.launch_command import LaunchCommand

Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        "--model-path",
        help="config.json, its directory, or a Hub id. Default: the bundled copy.",
        rich_help_panel=DEPLOYMENT_PANEL,
        metavar="PATH|ID",
    ),
]
Revision = Annotated[
    str | None,
    typer.Option("--revision", help="Revision on the Hub.", rich_help_panel=DEPLOYMENT_PANEL, metavar="REVISION"),
]
Engine = Annotated[
    str,
    typer.Option(
        "--engine",
        help="SGLang release, `installed`, or a profile file (see `kvplan engines`).",
        rich_help_panel=DEPLOYMENT_PANEL,
        metavar="RELEASE",
        autocompletion=releases,
    ),
]
GpuName = Annotated[
    str | None,
    typer.Option(
        "--gpu",
        help="GPU name, NAME:MIB, or `local` (see `kvplan gpus`). Default: an H200 is assumed.",
        rich_help_panel=DEPLOYMENT_PANEL,
        metavar="NAME",
        autocompletion=known_gpus,
    ),
]
Launch = Annotated[
    str | None,
    typer.Option(
        "--launch",
        help="File with the launch command: a script or a Kubernetes manifest (- for standard input).",
        rich_help_panel=DEPLOYMENT_PANEL,
        metavar="FILE",
    ),
]
Environment = Annotated[
    list[str] | None,
    typer.Option(
        "--env",
        help="An SGLANG_ switch of the server, such as SGLANG_MAMBA_CONV_DTYPE=float32; may be repeated.",
        rich_help_panel=DEPLOYMENT_PANEL,
        metavar="NAME=VALUE",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables (schema: docs/json.md).")]


class _Sources(NamedTuple):
    """What a command line says of a deployment beside the engine's flags."""

    model: str | None
    revision: str | None
    engine: str
    gpu: str | None
    launch: str | None
    environment: list[str] | None


def _sources(
    model: Model = None,
    revision: Revision = None,
    engine: Engine = BASELINE,
    gpu: GpuName = None,
    launch: Launch = None,
    environment: Environment = None,
) -> _Sources:
    return _Sources(model, revision, engine, gpu, launch, environment)


_SOURCES = OptionGroup(_sources)
_FLAGS = FlagGroup("flags", lambda: assumed_engine().flags)
DEPLOYMENT = (_SOURCES, _FLAGS)  # the groups of a command that plans something


def plan_of(ctx: typer.Context) -> Plan:
    """The Plan of a command that takes DEPLOYMENT, its notes printed to standard error.

    A launch command after `--` (or in `--launch FILE`) is read first; options given to kvplan itself win over it.
    Raises InputError, RefusedError.
    """
    made: Plan = given_of(ctx).plan()
    installed = installed_release()
    if installed is not None and installed != made.profile.base_release:
        print(f"kvplan: note: sglang {installed} is installed here; this is {made.profile.release}", file=sys.stderr)
    for note in (*made.notes, *made.deployment.warnings):
        print(f"kvplan: note: {note}", file=sys.stderr)
    return made


def given_of(ctx: typer.Context) -> Given:
    """What such a command line says, not yet resolved. Raises InputError."""
    asked, words = _SOURCES.of(ctx), ctx.obj["launch"]
    command = None
    if words is not None or asked.launch is not None:
        command = read_launch(words, asked.launch, load_profile(asked.engine).base_release)
    return given(
        _FLAGS.of(ctx),
        launch=command,
        model=asked.model,
        revision=asked.revision,
        gpu=asked.gpu,
        engine=asked.engine,
        environment=_switches(asked.environment),
    )


def read_launch(words: list[str] | None, path: str | None, release: str = BASELINE) -> "LaunchCommand | None":
    """The launch command after `--` or in `--launch FILE`, its own --config file with it. Raises InputError."""
    if words is not None and path is not None:
        raise InputError("give the launch command once: after -- or with --launch FILE")
    if path is not None:
        from glm_kvplan.launch.launch_file import read_launch_file

        return read_launch_file(path, release)
    if words is None:
        return None
    from glm_kvplan.engines.sglang.launch_command import read_launch_command
    from glm_kvplan.launch.launch_file import with_config_file

    # one word is the whole command in quotes: text for the reader to split
    return with_config_file(read_launch_command(words[0] if len(words) == 1 else words, release), release)


def _switches(assignments: list[str] | None) -> dict[str, str]:
    """The engine's switches that --env sets. Raises InputError for one that changes no byte."""
    if not assignments:
        return {}
    from glm_kvplan.engines.sglang.environment import ENVIRONMENT

    found = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals or name not in ENVIRONMENT:
            known = ", ".join(sorted(ENVIRONMENT))
            raise InputError(f"--env {assignment!r}: write NAME=VALUE with one of {known}")
        found[name] = value
    return found
