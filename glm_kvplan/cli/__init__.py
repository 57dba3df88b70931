"""The command line: one file a command, loaded only when it is called. No arithmetic in here."""

import sys
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

from glm_kvplan.errors import KvplanError

# name: what `kvplan --help` says of it. The function is `glm_kvplan.cli.<name>.<name>`.
COMMANDS = {
    "estimate": "What the caches cost: per token, per state slot, per request, per rank and in total.",
    "solve": "What the engine will size on this GPU, which limit binds, and what stays free.",
    "advise": "Which flags serve a workload on this GPU and layout, proved by solving them.",
    "report": "One page that shows a plan to people: map, frontier, prices, flags, formulas.",
    "check": "Deployment files held against what they expect: for CI.",
    "diff": "What changes between two deployments, engines or GPUs, in bytes.",
    "pools": "Every tensor the engine allocates on one rank: shape, dtype, bytes, and who pays.",
    "validate": "Allocate the pools on a GPU, the CPU or torch's meta device, and compare to the byte.",
    "reconcile": "A boot log or a running server, held against the plan: every number explained or not.",
    "explain": "Where everything lies, and nine misreadings, with this deployment's numbers.",
    "sweep": "A deployment over any axes: what the engine sizes at every point, and the best of them.",
    "model": "The checkpoint's geometry: layers by kind, row widths, state shapes.",
    "resolve": "Every flag that touches memory: its value, and why it has it.",
    "engines": "The engine releases kvplan knows, and what differs between them in bytes.",
    "gpus": "The GPUs kvplan knows.",
    "schema": "The JSON Schema of the deployment file, for editors.",
}


class _Commands(TyperGroup):
    """Looks a command up by name and imports its module only then."""

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        return list(COMMANDS)

    def get_command(self, ctx: typer.Context, cmd_name: str) -> Any:  # type: ignore[override]
        if cmd_name not in COMMANDS:
            return None
        if ctx.resilient_parsing or "--help" in sys.argv[1:2]:
            return typer.main.get_command(_app_of(cmd_name, lambda: None))
        module = import_module(f"glm_kvplan.cli.{cmd_name}")
        return typer.main.get_command(_app_of(cmd_name, getattr(module, cmd_name)))


def _app_of(name: str, function: Any) -> typer.Typer:
    app = typer.Typer(add_completion=False)
    app.command(name, short_help=COMMANDS[name])(function)
    return app


def _version(wanted: bool) -> None:
    if wanted:
        from glm_kvplan import __version__

        typer.echo(f"kvplan {__version__}")
        raise typer.Exit


app = typer.Typer(
    cls=_Commands,
    name="kvplan",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Exact cache-memory planner for GLM-5.3-Flash on SGLang.",
)


@app.callback()
def kvplan(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
) -> None:
    """Exact cache-memory planner for GLM-5.3-Flash on SGLang.

    Put `kvplan estimate --` in front of a launch command to see what its caches cost.
    """


def main(arguments: list[str] | None = None) -> None:
    """Run `kvplan`. Exit code 0: answered; 1: answered, and the answer is no; 2: the input cannot be used."""
    words = sys.argv[1:] if arguments is None else arguments
    ours, launch = words, None
    if "--" in words:
        at = words.index("--")
        ours, launch = words[:at], words[at + 1 :]
    try:
        code = app(args=ours, prog_name="kvplan", standalone_mode=False, obj={"launch": launch})
    except (KvplanError, typer.TyperException) as error:
        _fail(str(error) if isinstance(error, KvplanError) else error.format_message())
    except BrokenPipeError:
        sys.stderr.close()  # the reader has left; there is nobody to tell
        sys.exit(0)
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(130)
    sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str) -> None:
    print("kvplan: " + " ".join(message.split()), file=sys.stderr)
    sys.exit(2)
