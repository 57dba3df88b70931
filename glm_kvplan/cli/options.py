"""The options that describe a deployment, the same on every command that needs one."""

import functools
import inspect
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from glm_kvplan.deployment.flag_values import read_value
from glm_kvplan.deployment.flags import FLAGS, Flag
from glm_kvplan.engine.gpu import known_gpus
from glm_kvplan.engine.profile import BASELINE, installed_release, load_profile, releases
from glm_kvplan.errors import InputError
from glm_kvplan.planner import Given, Plan, given
from glm_kvplan.sizing.estimate import Workload, default_workload
from glm_kvplan.units import parse_count

_WHAT = "Model, engine and GPU"

Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        "--model-path",
        help="config.json, its directory, or a Hub id. Default: the bundled copy.",
        rich_help_panel=_WHAT,
        metavar="PATH|ID",
    ),
]
Revision = Annotated[
    str | None, typer.Option("--revision", help="Revision on the Hub.", rich_help_panel=_WHAT, metavar="REVISION")
]
Engine = Annotated[
    str,
    typer.Option(
        "--engine",
        help="SGLang release, `installed`, or a profile file (see `kvplan engines`).",
        rich_help_panel=_WHAT,
        metavar="RELEASE",
        autocompletion=releases,
    ),
]
GpuName = Annotated[
    str | None,
    typer.Option(
        "--gpu",
        help="GPU name, NAME:MIB, or `local` (see `kvplan gpus`). Default: an H200 is assumed.",
        rich_help_panel=_WHAT,
        metavar="NAME",
        autocompletion=known_gpus,
    ),
]
Launch = Annotated[
    str | None,
    typer.Option(
        "--launch",
        help="File with the launch command: a script or a Kubernetes manifest (- for standard input).",
        rich_help_panel=_WHAT,
        metavar="FILE",
    ),
]
Environment = Annotated[
    list[str] | None,
    typer.Option(
        "--env",
        help="An SGLANG_ switch of the server, such as SGLANG_MAMBA_CONV_DTYPE=float32; may be repeated.",
        rich_help_panel=_WHAT,
        metavar="NAME=VALUE",
    ),
]
RowLayout = Annotated[
    str | None,
    typer.Option(
        "--kv-row-layout",
        help="Token rows of a patched build: bf16, fp8_scaled or fp8_raw. Default: as the backends need.",
        rich_help_panel=_WHAT,
        metavar="LAYOUT",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables (schema: docs/json.md).")]

_SOURCES = {
    "model": (Model, None),
    "revision": (Revision, None),
    "engine": (Engine, BASELINE),
    "gpu": (GpuName, None),
    "launch": (Launch, None),
    "environment": (Environment, None),
    "kv_row_layout": (RowLayout, None),
}


def with_plan(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give `command(plan, ...)` the deployment options instead of its first parameter, and call it with the Plan.

    A launch command after `--` (or in `--launch FILE`) is read first; options given to kvplan itself win over it.
    """
    return _with_options(command, build_plan)


def with_given(command: Callable[..., Any]) -> Callable[..., Any]:
    """As `with_plan` for `command(given, ...)`, which resolves the deployment itself."""
    return _with_options(command, build_given)


def _with_options(command: Callable[..., Any], build: Callable[..., Any]) -> Callable[..., Any]:
    own = list(inspect.signature(command).parameters.values())[1:]
    # A command's own option wins over an engine flag of that name (--device), which a launch command can still give.
    shared = [flag for flag in FLAGS if all(flag.name != parameter.name for parameter in own)]

    @functools.wraps(command)
    def wrapper(ctx: typer.Context, **values: Any) -> Any:
        typed = ((flag, values.pop(flag.name)) for flag in shared)
        flags = {flag.name: _value(flag, value) for flag, value in typed if value is not None}
        sources = {name: values.pop(name) for name in _SOURCES}
        return command(build(ctx.obj["launch"], flags, **sources), **values)

    keyword = inspect.Parameter.KEYWORD_ONLY
    parameters = [inspect.Parameter("ctx", keyword, annotation=typer.Context)]
    parameters += [parameter.replace(kind=keyword) for parameter in own]
    parameters += [inspect.Parameter(name, keyword, annotation=a, default=d) for name, (a, d) in _SOURCES.items()]
    parameters += [inspect.Parameter(flag.name, keyword, annotation=_annotation(flag), default=None) for flag in shared]
    wrapper.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    wrapper.__annotations__ = {}
    return wrapper


def build_plan(launch_words: list[str] | None, flags: dict[str, Any], *, launch: str | None, **sources: Any) -> Plan:
    """The Plan of a command line, its notes printed to standard error. Raises InputError, RefusedError."""
    made = build_given(launch_words, flags, launch=launch, **sources).plan()
    installed = installed_release()
    if installed is not None and installed != made.profile.base_release:
        print(f"kvplan: note: sglang {installed} is installed here; this is {made.profile.release}", file=sys.stderr)
    for note in (*made.notes, *made.resolution.warnings):
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
    if launch is not None and launch_words is not None:
        raise InputError("give the launch command once: after -- or with --launch FILE")
    command: Any = launch_words
    if launch_words is not None and len(launch_words) == 1:
        command = launch_words[0]  # the whole command in quotes: text for the reader to split
    if launch is not None:
        from glm_kvplan.deployment.launch_file import read_launch_file

        command = read_launch_file(launch, load_profile(sources["engine"]).base_release)
    if kv_row_layout is not None:
        flags = {**flags, "kv_row_layout": kv_row_layout}
    return given(flags, launch=command, environment=_switches(environment), **sources)


def _switches(assignments: list[str] | None) -> dict[str, str]:
    """The engine's switches that --env sets. Raises InputError for one that changes no byte."""
    if not assignments:
        return {}
    from glm_kvplan.deployment.command import MEMORY_ENVIRONMENT

    found = {}
    for assignment in assignments:
        name, equals, value = assignment.partition("=")
        if not equals or name not in MEMORY_ENVIRONMENT:
            known = ", ".join(sorted(MEMORY_ENVIRONMENT))
            raise InputError(f"--env {assignment!r}: write NAME=VALUE with one of {known}")
        found[name] = value
    return found


def read_workload(plan: Plan, context: str | None, concurrency: str | None) -> Workload:
    """The workload that --context and --concurrency describe."""
    return default_workload(
        plan,
        None if context is None else read_tokens(plan, context, "--context"),
        None if concurrency is None else parse_count(concurrency, "--concurrency"),
    )


def read_tokens(plan: Plan, text: str, name: str) -> int:
    """Tokens of one request, no more than the server takes."""
    tokens, most = parse_count(text, name), plan.deployment.context_length
    if tokens > most:
        raise InputError(f"{name} {text}: {tokens} tokens are more than the server accepts ({most}, --context-length)")
    return tokens


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
