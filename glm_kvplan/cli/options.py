"""The options that describe a deployment, the same on every command that needs one."""

import functools
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from glm_kvplan.cli import DEPLOYMENT_PANEL
from glm_kvplan.engines.engine import Given
from glm_kvplan.engines.flag import Flag, read_value
from glm_kvplan.engines.planner import given
from glm_kvplan.engines.sglang.flags import FLAGS
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
RowLayout = Annotated[
    str | None,
    typer.Option(
        "--kv-row-layout",
        help="Token rows of a patched build: bf16, fp8_scaled, fp8_raw or fp8_padded. Default: as the backends need.",
        rich_help_panel=DEPLOYMENT_PANEL,
        metavar="LAYOUT",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables (schema: docs/json.md).")]

_KEYWORD = inspect.Parameter.KEYWORD_ONLY
_SOURCES = {
    "model": (Model, None),
    "revision": (Revision, None),
    "engine": (Engine, BASELINE),
    "gpu": (GpuName, None),
    "launch": (Launch, None),
    "environment": (Environment, None),
    "kv_row_layout": (RowLayout, None),
}


class OptionGroup(NamedTuple):
    """Options that a command takes as one value, `make(**values)`: `Annotated[Value, OptionGroup(Value, {...})]`."""

    make: Callable[..., Any]
    options: Mapping[str, Any]  # annotations by name; every default is None


def with_plan(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give `command(plan, ...)` the deployment options instead of its first parameter, and call it with the Plan.

    A launch command after `--` (or in `--launch FILE`) is read first; options given to kvplan itself win over it.
    """
    return _with_options(command, build_plan)


def with_given(command: Callable[..., Any]) -> Callable[..., Any]:
    """As `with_plan` for `command(given, ...)`, which resolves the deployment itself."""
    return _with_options(command, build_given)


def _with_options(command: Callable[..., Any], build: Callable[..., Any]) -> Callable[..., Any]:
    takes = list(inspect.signature(command).parameters.values())[1:]
    groups = {taken.name: group for taken in takes for group in _groups(taken.annotation)}
    own = [parameter for taken in takes for parameter in _options(taken, groups.get(taken.name))]
    # A command's own option wins over an engine flag of that name (--device), which a launch command can still give.
    shared = [flag for flag in FLAGS if all(flag.name != parameter.name for parameter in own)]

    @functools.wraps(command)
    def wrapper(ctx: typer.Context, **values: Any) -> Any:
        typed = ((flag, values.pop(flag.name)) for flag in shared)
        flags = {flag.name: _value(flag, value) for flag, value in typed if value is not None}
        sources = {name: values.pop(name) for name in _SOURCES}
        for name, group in groups.items():
            values[name] = group.make(**{option: values.pop(option) for option in group.options})
        return command(build(ctx.obj["launch"], flags, **sources), **values)

    parameters = [inspect.Parameter("ctx", _KEYWORD, annotation=typer.Context), *own]
    parameters += [_parameter(name, annotation, default) for name, (annotation, default) in _SOURCES.items()]
    parameters += [_parameter(flag.name, _annotation(flag)) for flag in shared]
    wrapper.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {}
    return wrapper


def _groups(annotation: Any) -> Iterator[OptionGroup]:
    return (part for part in getattr(annotation, "__metadata__", ()) if isinstance(part, OptionGroup))


def _options(taken: inspect.Parameter, group: OptionGroup | None) -> list[inspect.Parameter]:
    """The options behind one parameter of a command."""
    if group is None:
        return [taken.replace(kind=_KEYWORD)]
    return [_parameter(name, annotation) for name, annotation in group.options.items()]


def _parameter(name: str, annotation: Any, default: Any = None) -> inspect.Parameter:
    return inspect.Parameter(name, _KEYWORD, annotation=annotation, default=default)


def build_plan(launch_words: list[str] | None, flags: dict[str, Any], *, launch: str | None, **sources: Any) -> Plan:
    """The Plan of a command line, its notes printed to standard error. Raises InputError, RefusedError."""
    made: Plan = build_given(launch_words, flags, launch=launch, **sources).plan()
    installed = installed_release()
    if installed is not None and installed != made.profile.base_release:
        print(f"kvplan: note: sglang {installed} is installed here; this is {made.profile.release}", file=sys.stderr)
    for note in (*made.notes, *made.deployment.warnings):
        print(f"kvplan: note: {note}", file=sys.stderr)
    return made


def build_given(
    launch_words: list[str] | None,
    flags: dict[str, Any],
    *,
    launch: str | None,
    environment: list[str] | None,
    kv_row_layout: str | None,
    **sources: Any,
) -> Given:
    """What a command line says of a deployment, not yet resolved. Raises InputError."""
    command = None
    if launch_words is not None or launch is not None:
        command = read_launch(launch_words, launch, load_profile(sources["engine"]).base_release)
    if kv_row_layout is not None:
        flags = {**flags, "kv_row_layout": kv_row_layout}
    return given(flags, launch=command, environment=_switches(environment), **sources)


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


def _value(flag: Flag, value: Any) -> Any:
    if flag.kind in ("flag", "switch"):
        return value
    if flag.kind == "ints":
        return [read_value(flag, word) for word in value.replace(",", " ").split()]
    return read_value(flag, value)


def _annotation(flag: Flag) -> Any:
    names = flag.options
    if flag.negative:
        names = (f"{flag.options[0]}/{flag.negative[0]}", *flag.options[1:])
    option = typer.Option(
        *names, help=flag.help, rich_help_panel=flag.group, metavar=_metavar(flag), show_default=False
    )
    kind = bool if flag.kind in ("flag", "switch") else str
    return Annotated[kind | None, option]


def _metavar(flag: Flag) -> str | None:
    if flag.kind in ("flag", "switch"):
        return None
    if flag.choices:
        shown = "|".join(flag.choices)
        return shown if len(shown) <= 44 else "NAME"
    return {"int": "N", "count": "N", "ints": "N,N", "float": "X", "json": "JSON"}.get(flag.kind, "TEXT")
