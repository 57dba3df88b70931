"""How far a sweep has come, on a terminal; silence in a pipe."""

import sys
from collections.abc import Iterable, Iterator
from typing import Any

EVERY = 500  # points between two looks at the bar


def progress(rows: Iterable[tuple[Any, ...]], total: int) -> Iterable[tuple[Any, ...]]:
    """The rows, counted on standard error where that is a terminal."""
    return _counted(rows, total) if sys.stderr.isatty() else rows


def _counted(rows: Iterable[tuple[Any, ...]], total: int) -> Iterator[tuple[Any, ...]]:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from glm_kvplan.show.console import DataConsole

    shown = (TextColumn("points"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*shown, console=DataConsole(stderr=True), transient=True) as bar:
        task = bar.add_task("points", total=total)
        number = 0
        for number, row in enumerate(rows, 1):
            yield row
            if number % EVERY == 0:
                bar.update(task, completed=number)
        bar.update(task, completed=number)
