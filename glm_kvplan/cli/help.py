"""What `--help` prints: plain text within the terminal's width, options by panel, examples that can be pasted."""

import shlex
import shutil
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from inspect import cleandoc
from typing import Any

import typer

from glm_kvplan.cli import DEPLOYMENT_PANEL
from glm_kvplan.cli.language import spoken
from glm_kvplan.cli.option_groups import FlagOption
from glm_kvplan.show.wrapping import wrap

_LEAST, _MOST, _NAMES = 60, 100, 32  # columns of a line at least and at most; the column of names
_EXAMPLE = "Example: "


def command_help(command: Any, ctx: typer.Context, *, every_flag: bool) -> str:
    """One command: usage, what it answers, an example, its options, and the engine's flags by name or explained."""
    own: dict[str, list[Any]] = {}
    engine: dict[str, list[Any]] = {}
    for param in command.get_params(ctx):
        panel = getattr(param, "rich_help_panel", None)
        of = "Arguments" if param.param_type_name == "argument" else panel or "Options"
        (engine if _of_engine(param) else own).setdefault(of, []).append(param)
    launch = " [-- LAUNCH COMMAND]" if DEPLOYMENT_PANEL in own else ""
    usage = [ctx.command_path, command.options_metavar, *(param.metavar for param in own.get("Arguments", ()))]
    parts = [f"{_bold(_said('Usage:'))} {' '.join(usage)}{launch}"]
    parts += _paragraphs(command.help or "")
    for panel in sorted(own, key=lambda name: (name != "Arguments", name == DEPLOYMENT_PANEL)):
        parts.append(_rows(panel, (_row(param, ctx) for param in own[panel])))
    if engine and every_flag:
        parts += [_rows(panel, (_row(param, ctx) for param in params)) for panel, params in engine.items()]
    elif engine:
        parts.append(_names(engine))
    return "\n\n".join(parts)


def group_help(panels: Mapping[str, Mapping[str, str]], command: Any, ctx: typer.Context) -> str:
    """`kvplan --help`: the commands by what they are for."""
    parts = [f"{_bold(_said('Usage:'))} {ctx.command_path} COMMAND [OPTIONS] [-- LAUNCH COMMAND]"]
    parts += _paragraphs(command.help or "")
    width = max(len(name) for commands in panels.values() for name in commands) + 2
    parts += [_rows(panel, commands.items(), width + 2) for panel, commands in panels.items()]
    parts.append(_rows("Options", (_row(param, ctx) for param in command.get_params(ctx))))
    parts.append(_wrapped("Exit code 0: answered; 1: answered, and the answer is no; 2: the input cannot be used."))
    return "\n\n".join(parts)


def _of_engine(param: Any) -> bool:
    return isinstance(param, FlagOption)


def _width() -> int:
    return max(_LEAST, min(shutil.get_terminal_size().columns, _MOST))


def _bold(text: str) -> str:
    return typer.style(text, bold=True)


def _said(text: str) -> str:
    return spoken()(text)


def _wrapped(text: str, indent: str = "", first: str | None = None) -> str:
    """The text in the language of the answers, in lines."""
    first, text = indent if first is None else first, _said(text)
    if not text.isascii():
        return "\n".join(wrap(first + text, _width() - 1, len(indent)))
    return textwrap.fill(
        text,
        _width() - 1,
        initial_indent=first,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _paragraphs(docstring: str) -> Iterator[str]:
    for paragraph in cleandoc(docstring).split("\n\n"):
        text = " ".join(paragraph.split())
        if text.startswith(_EXAMPLE):
            yield f"{_bold(_said('Example:'))}\n{_command(text.removeprefix(_EXAMPLE))}"
        elif text:
            yield _wrapped(text)


def _command(text: str) -> str:
    """A command over as many lines as it needs, an option kept with its value."""
    pieces: list[str] = []
    for word in shlex.split(text):
        shown = word if word in ("|", "2>&1", ">") else shlex.quote(word)
        if pieces and not word.startswith("-") and pieces[-1].startswith("--"):
            pieces[-1] += f" {shown}"
        else:
            pieces.append(shown)
    lines = [""]
    for piece in pieces:
        if lines[-1] and len(lines[-1]) + len(piece) > _width() - 8:
            lines.append("")
        lines[-1] += f" {piece}" if lines[-1] else piece
    return "  " + " \\\n    ".join(lines)


def _row(param: Any, ctx: typer.Context) -> tuple[str, str]:
    """An option's names and its help. Of its names the first is shown, and those that are shorter."""
    if param.param_type_name == "argument":
        return param.make_metavar(ctx), param.help or ""
    first = max(param.opts, key=lambda name: (name.startswith("--"), -param.opts.index(name)))
    names = [name for name in param.opts if name == first or len(name) < len(first)]
    names += param.secondary_opts
    value = "" if param.is_flag else " " + _value(param, ctx)
    help = _said(" ".join((param.help or "").split()))
    if _of_engine(param):
        help = f"{help[:1].upper()}{help[1:]}."
    default = param.default
    if not param.is_flag and param.show_default and isinstance(default, (int, float, str)) and "[" not in help:
        help += f" [{getattr(default, 'value', default)}]"
    return ", ".join(sorted(names, key=len)) + value, help


def _value(param: Any, ctx: typer.Context) -> str:
    if param.metavar:
        return str(param.metavar)
    plain = {"str": "TEXT", "int": "N", "float": "X", "path": "FILE"}
    shown = str(param.make_metavar(ctx=ctx)).strip("<>[]")
    name = shown.split(" ", maxsplit=1)[0].rstrip(">")
    return plain.get(name, shown)


def _rows(panel: str, rows: Iterable[tuple[str, str]], names: int = _NAMES) -> str:
    shown = [_bold(_said(f"{panel}:"))]
    for name, help in rows:
        if len(name) + 4 <= names:
            shown.append(_wrapped(help, " " * names, f"  {name}".ljust(names)))
        else:
            shown += [f"  {name}", _wrapped(help, " " * names)]
    return "\n".join(shown)


def _names(engine: Mapping[str, list[Any]]) -> str:
    lines = [_bold(_said("Engine flags"))]
    lines[0] += _said(" (the engine's own names; `kvplan resolve --help` explains each):")
    for panel, params in engine.items():
        lines += [f"  {panel}", _wrapped(" ".join(param.opts[0] for param in params), "    ")]
    return "\n".join(lines)
