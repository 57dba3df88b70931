"""Options that several commands share, as groups: what typer reads of a typed function, or of an engine's flag table.

@takes(DEPLOYMENT, MEMORY)
def solve(ctx: typer.Context, ...): memory = MEMORY.of(ctx)
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property, partial
from typing import Any, Generic, Protocol, TypeVar

import typer
from typer.core import TyperOption

from glm_kvplan.engines.by_name import engine_named
from glm_kvplan.engines.flag import Flag
from glm_kvplan.engines.protocol import Engine
from glm_kvplan.errors import InputError

T = TypeVar("T")
Function = TypeVar("Function", bound=Callable[..., Any])


class Group(Protocol):
    """A group as a command sees it."""

    name: str

    def options(self, engine: Callable[[], Engine]) -> Sequence[Any]:
        """The options, made anew or kept: a command adds them to its own. `engine` is the one that is asked about."""

    def read(self, values: dict[str, Any]) -> Any:
        """What the options say, by their names."""


def takes(*groups: Group) -> Callable[[Function], Function]:
    """Give a command the options of these groups beside its own; an option of its own of the same name wins."""

    def mark(command: Function) -> Function:
        command.option_groups = groups  # type: ignore[attr-defined]
        return command

    return mark


class OptionGroup(Generic[T]):
    """The options that are the parameters of `make`, which makes one value of them."""

    def __init__(self, make: Callable[..., T]) -> None:
        self.name = f"{__name__}.{make.__name__}"
        self._make = make

    @cached_property
    def _command(self) -> Any:
        app = typer.Typer(add_completion=False)
        app.command()(self._make)
        return typer.main.get_command(app)

    def options(self, engine: Callable[[], Engine]) -> Sequence[Any]:
        found: Sequence[Any] = self._command.params
        return found

    def read(self, values: dict[str, Any]) -> T:
        made: T = self._command.callback(**values)
        return made

    def of(self, ctx: typer.Context) -> T:
        """The value in the command that runs."""
        value: T = ctx.meta[self.name]
        return value


class FlagGroup:
    """The engine's flags as options: their values are the flags that were given, typed, by the engine's names."""

    def __init__(self, name: str) -> None:
        self.name = f"{__name__}.{name}"

    def options(self, engine: Callable[[], Engine]) -> Sequence[Any]:
        return _flag_options(engine().name)

    def read(self, values: dict[str, Any]) -> dict[str, object]:
        return {name: value for name, value in values.items() if value is not None}

    def of(self, ctx: typer.Context) -> Mapping[str, object]:
        """The flags given in the command that runs."""
        value: Mapping[str, object] = ctx.meta[self.name]
        return value


@cache
def _flag_options(engine_name: str) -> Sequence[Any]:
    engine = engine_named(engine_name)
    return [FlagOption(flag, engine.read_flag) for flag in engine.flags]


class FlagOption(TyperOption):
    """One flag of an engine as an option: spellings, help and panel from its record; `read` is the engine's reading."""

    def __init__(self, flag: Flag, read: Callable[[Flag, str], object]) -> None:
        switch = flag.kind in ("flag", "switch")
        spelled = [*flag.options]
        if flag.negative:
            spelled[0] = f"{flag.options[0]}/{flag.negative[0]}"
        choices = flag.choices
        super().__init__(
            param_decls=[flag.name, *spelled],
            type=None if switch else str,
            callback=None if switch else partial(_read, flag, read),
            is_flag=switch,
            help=flag.help,
            metavar=_metavar(flag),
            autocompletion=None if choices is None else lambda *_: [*choices],
            rich_help_panel=flag.group,
        )


def _read(
    flag: Flag, read: Callable[[Flag, str], object], ctx: typer.Context, option: object, text: str | None
) -> object:
    """The value of an option's text, as the engine reads it. Raises InputError."""
    if text is None:
        return None
    if flag.kind == "ints":
        return [read(flag, word) for word in text.replace(",", " ").split()]
    try:
        return read(flag, text)
    except InputError:
        if "," not in text:
            raise
        from glm_kvplan.cli.guesses import refuse_axis

        refuse_axis(ctx.info_name, flag.name, flag.option, text, partial(read, flag))
        raise


def _metavar(flag: Flag) -> str | None:
    if flag.kind in ("flag", "switch"):
        return None
    if flag.choices:
        shown = "|".join(flag.choices)
        return shown if len(shown) <= 44 else "NAME"
    return {"int": "N", "count": "N", "ints": "N,N", "float": "X", "json": "JSON"}.get(flag.kind, "TEXT")
