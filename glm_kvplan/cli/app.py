"""The app: commands found by name, groups of options added, errors as one line and an exit code."""

import gc
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from copy import copy
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from glm_kvplan.cli import COMMANDS, PANELS, WORDS
from glm_kvplan.cli.answering import print_notes
from glm_kvplan.cli.language import LANGUAGES, spoken, take_language
from glm_kvplan.engines.by_name import assumed_engine
from glm_kvplan.engines.protocol import Engine
from glm_kvplan.errors import InputError, KvplanError
from glm_kvplan.reading.files_read import forget_read
from glm_kvplan.reading.secret_words import without_userinfo
from glm_kvplan.show.printable import aside
from glm_kvplan.show.said import Text

_INTERRUPTED = 130
_BROKEN_PIPE = 141  # what a shell reports of a program that SIGPIPE ended
_COMPLETING = "_KVPLAN_COMPLETE"  # typer's variable
_LANGUAGE = "Language of the answer: en, or zh for Chinese. [KVPLAN_LANG, else en]"
_CALLED = "glm_kvplan.called"  # the command that is run, beside those that are only listed


class _ReaderLeft(Exception):
    """Whoever read our output has closed it."""


class _Stopped(Exception):
    """Ctrl-C; the message says what is left of the work."""


class _Command(TyperCommand):
    """A command whose help is ours, plain and as wide as the terminal, and that takes groups of shared options."""

    shared: dict[Any, list[str]]  # of each group (`option_groups.takes`) the options taken

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        if ctx.obj["whole_process"]:
            gc.freeze()  # what imports made is never garbage
        gc.enable()  # switched off by cli.main
        for group, names in self.shared.items():
            ctx.meta[group.name] = group.read({name: ctx.params.pop(name) for name in names})
        return super().invoke(ctx)

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        if ("serve" in args or "-m" in args) and not ctx.resilient_parsing:
            from glm_kvplan.cli.guesses import refuse_launch

            refuse_launch(args)
        asked, ctx.allow_extra_args = ctx.allow_extra_args, True
        try:
            left = super().parse_args(ctx, args)
        except typer.TyperException as error:
            if type(error).__name__ != "NoSuchOption":
                raise
            from glm_kvplan.cli.guesses import refuse_option

            option = str(getattr(error, "option_name", ""))
            refuse_option(str(self.name), option[:60], lambda: _engine(ctx), lambda name: _options(name, ctx))
        finally:
            ctx.allow_extra_args = asked
        if left and not ctx.resilient_parsing:
            from glm_kvplan.cli.guesses import refuse_argument

            refuse_argument(str(self.name), left[0])
        return left

    def get_help(self, ctx: typer.Context) -> str:  # type: ignore[override]
        from glm_kvplan.cli.help import command_help

        return command_help(self, ctx, every_flag=self.name == "resolve")


class _Commands(TyperGroup):
    """Looks a command up by name and imports its module only then."""

    def get_help(self, ctx: typer.Context) -> str:  # type: ignore[override]
        from glm_kvplan.cli.help import group_help

        return group_help(PANELS, self, ctx)

    def parse_args(self, ctx: typer.Context, args: list[str]) -> list[str]:  # type: ignore[override]
        try:
            return super().parse_args(ctx, args)
        except typer.TyperException as error:
            if type(error).__name__ != "NoSuchOption":
                raise
            option = str(getattr(error, "option_name", ""))[:60]
            if option.lower() == "-v":
                raise InputError(f"kvplan has no {option}; did you mean kvplan --version?") from None
            raise InputError(f"a command goes in front of {option}, as in: kvplan solve {option}") from None

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]
        return list(COMMANDS)

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]
        try:
            code = super().invoke(ctx)
            sys.stdout.flush()
        except BrokenPipeError:  # typer would make it exit code 1, which is an answer here
            raise _ReaderLeft from None
        except KeyboardInterrupt as stopped:  # typer would say nothing
            raise _Stopped(str(stopped) or "stopped") from None
        return code

    def resolve_command(self, ctx: typer.Context, args: list[str]) -> Any:  # type: ignore[override]
        if args[0] not in COMMANDS and ctx.resilient_parsing:
            return None, None, []  # `kvplan help` and what follows it: commands are completed
        if args[0] not in COMMANDS:
            from glm_kvplan.cli.guesses import refuse_command, refuse_launch

            refuse_launch(args)
            refuse_command(args[0])
        ctx.meta[_CALLED] = args[0]
        ctx.meta[WORDS] = args[1:]
        return super().resolve_command(ctx, args)

    def get_command(self, ctx: typer.Context, cmd_name: str) -> Any:  # type: ignore[override]
        if cmd_name not in COMMANDS:
            return None
        if ctx.resilient_parsing and ctx.meta.get(_CALLED) != cmd_name:
            return _command(cmd_name, _nothing)  # a shell that completes names
        return _named(cmd_name, ctx)


def _nothing() -> None:
    pass


def _named(name: str, ctx: typer.Context) -> Any:
    module = import_module(f"glm_kvplan.cli.{name}")
    return _command(name, getattr(module, name), lambda: _engine(ctx))


def _options(name: str, ctx: typer.Context) -> list[str]:
    """Every option of a command, in every spelling."""
    return [spelling for param in _named(name, ctx).params for spelling in (*param.opts, *param.secondary_opts)]


def _engine(ctx: typer.Context) -> Engine:
    from glm_kvplan.cli.options import asked_engine

    return asked_engine(ctx)


def _command(name: str, function: Any, engine: Callable[[], Engine] = assumed_engine) -> Any:
    command = copy(_own(name, function))
    own = {param.name for param in command.params}
    command.params = [*command.params, _language()]
    command.shared = {}
    for group in getattr(function, "option_groups", ()):
        added = [option for option in group.options(engine) if option.name not in own]
        command.shared[group] = [option.name for option in added]
        command.params += added
    return command


@cache
def _own(name: str, function: Any) -> Any:
    """A command with the options of its own."""
    app = typer.Typer(add_completion=False)
    app.command(name, cls=_Command, short_help=COMMANDS[name])(function)
    return typer.main.get_command(app)


@cache
def _language() -> Any:
    """--lang, for help and shells: its value is taken off the words before any option is read."""
    return TyperOption(
        param_decls=["--lang"],
        type=str,
        expose_value=False,
        help=_LANGUAGE,
        metavar="NAME",
        autocompletion=lambda *_: [*LANGUAGES],
    )


def _version(wanted: bool) -> None:
    if wanted:
        from glm_kvplan import __version__

        typer.echo(f"kvplan {__version__}")
        raise typer.Exit


app = typer.Typer(
    cls=_Commands,
    name="kvplan",
    pretty_exceptions_enable=False,
)


@app.callback()
def kvplan(
    version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version."),
    lang: str = typer.Option(
        "", "--lang", help=_LANGUAGE, metavar="NAME", show_default=False, autocompletion=lambda: [*LANGUAGES]
    ),
) -> None:
    """Exact cache-memory planner for GLM-5.3-Flash on SGLang and vLLM.

    Put `kvplan solve --gpu NAME --` in front of your launch command to see what the server will hold.

    Example: kvplan solve --gpu b200 -- sglang serve --model-path zai-org/GLM-5.3-Flash --tp 4
    """


@cache
def _group() -> Any:
    return typer.main.get_command(app)


def run(arguments: list[str] | None) -> None:
    """Run `kvplan` with these arguments, or the process's own. A shell that completes words is told no errors.

    That the engine refuses a deployment is a no, whichever command meets it.
    """
    _open_streams()
    forget_read()
    words = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    ours, launch = words, None
    if "--" in words:
        at = words.index("--")
        ours, launch = words[:at], words[at + 1 :]
    if not ours:
        _fail("a command goes in front of --, as in: kvplan solve --gpu b200 -- ...")
    ours = ["--help" if word == "-h" else word for word in ours]
    notes: list[Text] = []  # how the input was read: for whoever gets an answer
    try:
        ours = take_language(ours)
        if ours[:1] in (["help"], ["--help"]):  # kvplan help solve
            ours = [*ours[1:2], "--help"]
        elif ours[1:] == ["help"]:  # kvplan solve help
            ours = [ours[0], "--help"]
        spoken()  # a language that there is not is said first
        code = _group()(
            args=ours,
            prog_name="kvplan",
            standalone_mode=False,
            obj={"launch": launch, "words": ours, "whole_process": arguments is None, "notes": notes},
        )
        print_notes(notes)
    except (KvplanError, typer.TyperException) as error:
        if _COMPLETING in os.environ:
            sys.exit(0)
        message = str(error) if isinstance(error, KvplanError) else error.format_message()
        no = isinstance(error, KvplanError) and error.is_no
        if no:
            print_notes(notes)
        _fail(message, 1 if no else 2)
    except _ReaderLeft:
        drop_output()
        sys.exit(_BROKEN_PIPE)
    except OSError as error:
        drop_output()
        _fail(f"{error.filename or 'the answer cannot be written'}: {error.strerror or error}")
    except _Stopped as stopped:
        _fail(str(stopped), _INTERRUPTED)
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(_INTERRUPTED)
    sys.exit(code if isinstance(code, int) else 0)


def _fail(message: str, code: int = 2) -> None:
    with suppress(OSError):
        print(aside(_told(" ".join(without_userinfo(message).split()))), file=sys.stderr)
    sys.exit(code)


def _told(message: str) -> str:
    """In the language of the answers, unless that is what is wrong."""
    try:
        return spoken()(message)
    except InputError:
        return message


def _open_streams() -> None:
    """Give a process that was started with closed streams some to write to."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115


def drop_output() -> None:
    """Nothing is written to standard output any more, not even what is still buffered at the interpreter's end."""
    with suppress(OSError, ValueError):
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)
