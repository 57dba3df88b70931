"""What a shell completes: the values of options that have choices."""

import typer

from glm_kvplan.cli.options import asked_engine
from glm_kvplan.engines.by_name import NAMES


def devices() -> list[str]:
    return ["auto", "cpu", "cuda", "meta"]


def packages() -> list[str]:
    """The engines that can be let build what is compared."""
    return [*NAMES]


def axes(ctx: typer.Context) -> list[str]:
    """Names of the axes of a sweep."""
    from glm_kvplan.answers.sweep.axes import axis_names

    return [f"{name}=" for name in axis_names(asked_engine(ctx))]


def columns(ctx: typer.Context) -> list[str]:
    """What the rows of a sweep can be ordered by."""
    from glm_kvplan.engines.sweep_columns import sweeping

    names = [column.name for column in sweeping(asked_engine(ctx)).COLUMNS]
    return [*names, *(f"{name}:desc" for name in names)]


def tried(ctx: typer.Context) -> list[str]:
    """Flags with choices, and a value."""
    return [f"{flag.option[2:]}={one}" for flag in asked_engine(ctx).flags for one in flag.choices or ()]
