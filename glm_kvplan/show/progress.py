"""How far a long answer has come: bars on standard error where that is a terminal, silence in a pipe."""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from time import monotonic
from typing import Any

from glm_kvplan.show.terminal import progress_console

EVERY = 100  # rows between two looks at the clock and the bar
PATIENCE = 1.0  # seconds without a bar


@contextmanager
def bytes_bar(title: str) -> Iterator[tuple[Callable[[int], None], Callable[[int], None]]]:
    """Two functions, `begin(total)` and `advance(nbytes)`, drawn as a bar of bytes."""
    if not sys.stderr.isatty():
        yield (lambda total: None), (lambda nbytes: None)
        return
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns = (TextColumn(title), BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=progress_console(), transient=True) as bar:
        task = bar.add_task(title, total=None)
        yield (
            lambda total: bar.update(task, total=total),
            lambda nbytes: bar.advance(task, nbytes),
        )


def counted(rows: Iterable[tuple[Any, ...]], total: int, title: str) -> Iterable[tuple[Any, ...]]:
    """The rows, counted as they pass: a bar appears when that has taken a second."""
    return _counted(rows, total, title) if sys.stderr.isatty() else rows


def _counted(rows: Iterable[tuple[Any, ...]], total: int, title: str) -> Iterator[tuple[Any, ...]]:
    begun, bar, task = monotonic(), None, None
    try:
        for number, row in enumerate(rows, 1):
            yield row
            if number % EVERY:
                continue
            if bar is None and monotonic() - begun > PATIENCE:
                bar = _bar_of_rows()
                bar.start()
                task = bar.add_task(title, total=total)
            if bar is not None:
                bar.update(task, completed=number)
    finally:
        if bar is not None:
            bar.stop()


def _bar_of_rows() -> Any:
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    return Progress(*columns, console=progress_console(), transient=True)
