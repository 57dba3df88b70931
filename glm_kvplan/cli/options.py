"""The options that describe a deployment, the same on every command that needs one."""

from collections.abc import Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from glm_kvplan.cli import DEPLOYMENT_PANEL, WORDS
from glm_kvplan.cli.answering import note
from glm_kvplan.cli.option_groups import FlagGroup, OptionGroup
from glm_kvplan.engines.by_name import NAMES, assumed_engine, check_answers, engine_named, find_release
from glm_kvplan.engines.planner import Launchable, given
from glm_kvplan.engines.protocol import Engine as EngineAnswers
from glm_kvplan.engines.protocol import Given
from glm_kvplan.errors import InputError
from glm_kvplan.memory.gpu import find_gpu, known_gpus

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


def every_release() -> list[str]:
    """What --engine takes by name: the first engine's releases bare, the others' with the engine's name."""
    first, *others = map(engine_named, NAMES)
    return [*first.releases(), *(f"{each.name}-{release}" for each in others for release in each.releases())]


Engine = Annotated[
    str | None,
    typer.Option(
        "--engine",
        help="Release (0.5.23, vllm-0.33.0), `installed`, or a profile file (see `kvplan info engines`). "
        "[of the engine that the launch command starts, the one it assumes]",
        rich_help_panel=DEPLOYMENT_PANEL,
        metavar="RELEASE",
        autocompletion=every_release,
    ),
]
GpuName = Annotated[
    str | None,
    typer.Option(
        "--gpu",
        help="GPU name, NAME:MIB, or `local` (see `kvplan info gpus`). Default: an H200 is assumed.",
        rich_help_panel=DEPLOYMENT_PANEL,
        metavar="NAME",
        autocompletion=known_gpus,
    ),
]
Launch = Annotated[
    str | None,
    typer.Option(
        "--launch",
        help="File with the launch command: a script, a manifest, Compose, ... (- for standard input).",
        rich_help_panel=DEPLOYMENT_PANEL,
        metavar="FILE",
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        help="Value of a variable that the launch text leaves open, such as TP=8; may be repeated.",
        rich_help_panel=DEPLOYMENT_PANEL,
        metavar="NAME=VALUE",
    ),
]
ContainerName = Annotated[
    str | None,
    typer.Option(
        "--container",
        help="Which server, where the launch text holds several: a container's or an object's name.",
        rich_help_panel=DEPLOYMENT_PANEL,
        metavar="NAME",
    ),
]
Environment = Annotated[
    list[str] | None,
    typer.Option(
        "--env",
        help="An environment switch of the server, such as SGLANG_MAMBA_CONV_DTYPE=float32; may be repeated.",
        rich_help_panel=DEPLOYMENT_PANEL,
        metavar="NAME=VALUE",
        autocompletion=lambda: [f"{name}=" for name in _known_switches()],
    ),
]
Root = Annotated[
    Path | None,
    typer.Option(
        "--root",
        help="Folder for the files that deployment files name. [each deployment file's own; no other is read]",
        metavar="DIR",
    ),
]
All = Annotated[bool, typer.Option("--all", help="Print the whole answer; without it one screen of it.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables (schema: docs/json.md).")]


class _Sources(NamedTuple):
    """What a command line says of a deployment beside the engine's flags."""

    model: str | None
    revision: str | None
    engine: str | None
    gpu: str | None
    launch: str | None
    container: str | None
    values: list[str] | None
    environment: list[str] | None


def _sources(
    model: Model = None,
    revision: Revision = None,
    engine: Engine = None,
    gpu: GpuName = None,
    launch: Launch = None,
    container: ContainerName = None,
    values: Set = None,
    environment: Environment = None,
) -> _Sources:
    return _Sources(model, revision, engine, gpu, launch, container, values, environment)


_SOURCES = OptionGroup(_sources)
_FLAGS = FlagGroup("flags")
_LAUNCH = f"{__name__}.launch"
DEPLOYMENT = (_SOURCES, _FLAGS)  # the groups of a command that plans something


def engine_asked(words: Sequence[str], launch: Sequence[str] | None) -> EngineAnswers:
    """The engine that a command line is about: its flags are options there. Words that say nothing mean the assumed."""
    prefix = (_last(words, "--engine") or "").partition("-")[0]
    if prefix in NAMES:
        return engine_named(prefix)
    path = _last(words, "--launch")
    path = path if path is not None and Path(path).is_file() else None  # a stream is read once, and not here
    if launch or path is not None:
        from glm_kvplan.engines.launches import launched_engine

        with suppress(InputError):  # what is wrong with the launch is said where it is read
            found = launch_given([*launch] if launch else None, path)
            if found is not None:
                return engine_named(launched_engine(found, _last(words, "--container")) or NAMES[0])
    return assumed_engine()


def asked_engine(ctx: typer.Context) -> EngineAnswers:
    """The engine that a command line is about, before its options are read."""
    words = ctx.meta.get(WORDS, ())
    if "--" in words:  # a shell completes them all
        at = words.index("--")
        return engine_asked(words[:at], words[at + 1 :])
    return engine_asked(words, (ctx.obj or {}).get("launch"))


def _last(words: Sequence[str], option: str) -> str | None:
    """The value of an option among words that are not parsed yet."""
    found = None
    for word, following in pairwise((*words, "")):
        if word == option:
            found = following
        elif word.startswith(f"{option}="):
            found = word.partition("=")[2]
    return found


def plan_of(ctx: typer.Context, *, every_engine: bool = False) -> Any:
    """The Plan of a command that takes DEPLOYMENT; its notes are for standard error, after the answer.

    A launch command after `--` (or in `--launch FILE`) is read first; options given to kvplan itself win over it.
    `every_engine`: the command is no answer of an engine's own. Raises InputError, RefusedError.
    """
    made = given_of(ctx, every_engine=every_engine).plan()
    engine = made.profile.engine
    installed = engine.installed()
    if installed is not None and installed != made.profile.base_release:
        text = f"{engine.name} {installed} is installed here; this is {made.profile.release}"
        note(ctx, text)
    container, gpus = made.given.container, made.gpus // made.hosts
    if container is not None and container.gpus not in (None, gpus):
        note(ctx, f"container {container.label} asks for {container.gpus} GPUs; the layout has {gpus} a node")
    for text in (*made.notes, *made.warnings):
        note(ctx, text)
    return made


def given_of(ctx: typer.Context, *, every_engine: bool = False) -> Given:
    """What such a command line says, not yet resolved. Raises InputError."""
    asked, launch = sources_of(ctx)
    found = given(
        _FLAGS.of(ctx),
        launch=launch,
        container=asked.container,
        model=asked.model,
        revision=asked.revision,
        gpu=asked.gpu,
        engine=asked.engine,
        environment=_switches(asked.environment),
    )
    if not every_engine:
        check_answers(found.profile.engine, str(ctx.info_name))
    return found


def sources_of(ctx: typer.Context) -> "tuple[_Sources, Launchable | None]":
    """What such a command line says beside flags, and its launch. Raises InputError."""
    asked = _SOURCES.of(ctx)
    for option, text, read in (("gpu", asked.gpu, find_gpu), ("engine", asked.engine, find_release)):
        if text is not None and "," in text:
            from glm_kvplan.cli.guesses import refuse_axis

            refuse_axis(ctx.info_name, option, f"--{option}", text, read)
    if _LAUNCH not in ctx.meta:  # a stream can be read once
        ctx.meta[_LAUNCH] = launch_given(ctx.obj["launch"], asked.launch, asked.values)
    return asked, ctx.meta[_LAUNCH]


def flags_of(ctx: typer.Context) -> dict[str, object]:
    """The engine's flags among kvplan's own options."""
    return dict(_FLAGS.of(ctx))


def container_taken(ctx: typer.Context, label: str) -> None:
    """As if --container had named it."""
    ctx.meta[_SOURCES.name] = _SOURCES.of(ctx)._replace(container=label)


def launch_given(words: list[str] | None, path: str | None, values: list[str] | None = None) -> Launchable | None:
    """The launch command after `--`, or what `--launch FILE` holds, with what --set gives. Raises InputError."""
    if words is not None and path is not None:
        raise InputError("give the launch command once: after -- or with --launch FILE")
    # one word is the whole command in quotes: text for the reader to split
    launch = words[0] if words is not None and len(words) == 1 else words
    if path is None and not values:
        return launch
    from glm_kvplan.engines.servers import SERVERS
    from glm_kvplan.launch.bash.surroundings import Surroundings
    from glm_kvplan.launch.forms import launches_in
    from glm_kvplan.launch.given_values import read_given
    from glm_kvplan.launch.launch_file import read_launch_file

    given = read_given(values)
    if path is not None:
        return read_launch_file(path, SERVERS, given)
    if launch is None:
        raise InputError("--set gives values to a launch text: put it after -- or name its file with --launch")
    return launches_in(launch, SERVERS, Surroundings(given=given))


def _known_switches() -> list[str]:
    return sorted(name for engine in map(engine_named, NAMES) for name in engine.switches)


def _switches(assignments: list[str] | None) -> dict[str, str]:
    """The engine's switches that --env sets. Raises InputError for one that changes no byte."""
    if not assignments:
        return {}
    known = _known_switches()
    found = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals or name not in known:
            shown = repr(name[:60]) if equals else "without ="  # what is no name may be a value
            raise InputError(f"--env {shown}: write NAME=VALUE with one of {', '.join(known)}")
        found[name] = value
    return found
