"""`kvplan validate` in the terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.table import Table
from rich.text import Text

from glm_kvplan.allocate.validation import Validation
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.sizing.rank_pools import RankPools
from glm_kvplan.show.console import DataConsole, console
from glm_kvplan.show.format import decimal, whole
from glm_kvplan.show.pools_text import render_head
from glm_kvplan.show.rank_words import explained, label, shape, sizes_line, verdict


def render(pools: RankPools, found: Validation[PoolSizes]) -> None:
    """Print predicted beside taken for every tensor, the three measures, and the verdict."""
    out = console()
    render_head(pools)
    out.print(Text(f"device: {_device(found)}; tensors built by {found.built_by}"))
    if found.scale != 1:
        out.print(Text(f"! scaled to {float(found.scale):.2%} to fit: {sizes_line(found.sizes)}", style="yellow"))
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold", show_footer=True, footer_style="bold")
    table.add_column("tensor", "total", overflow="fold", ratio=1)
    table.add_column("predicted, B", whole(found.predicted), justify="right", no_wrap=True)
    table.add_column("taken, B", whole(found.taken), justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for row in found.rows:
        taken = "absent" if row.taken is None else whole(row.taken.nbytes)
        mark = Text("equal", style="green") if row.equal else Text("differs", style="bold red")
        table.add_row(label(row.spec), whole(row.spec.nbytes), taken, mark)
    out.print(table)
    for row in found.rows:
        if not row.equal and row.taken is not None:
            spec, taken_ = row.spec, row.taken
            out.print(
                Text(f"! {spec.name}: {spec.count} x {spec.dtype} {shape(spec.shape)} predicted, ")
                + Text(f"{taken_.tensors} x {taken_.dtype} {shape(taken_.shape)} found"),
                style="red",
            )
    for name in found.unexpected:
        out.print(Text(f"! not predicted: {name}", style="red"))
    out.print(_measure_table(found))
    out.print(Text(verdict(found), style="bold green" if found.ok else "bold red"))


@contextmanager
def progress_bar() -> Iterator[tuple[Callable[[int], None], Callable[[int], None]]]:
    """Two functions, `begin(total)` and `advance(nbytes)`, drawn on standard error where that is a terminal."""
    bar = Progress(
        TextColumn("allocating"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=DataConsole(stderr=True),
        transient=True,
    )
    bar.disable = not bar.console.is_terminal
    with bar:
        task = bar.add_task("allocating", total=None)
        yield (
            lambda total: bar.update(task, total=total),
            lambda nbytes: bar.advance(task, nbytes),
        )


def _measure_table(found: Validation[PoolSizes]) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("measure", no_wrap=True)
    table.add_column("bytes", justify="right", no_wrap=True)
    table.add_column("to tensors", justify="right", no_wrap=True)
    table.add_column("explained by", overflow="fold")
    for measure in found.measures:
        table.add_row(
            measure.name,
            "-" if measure.nbytes is None else whole(measure.nbytes),
            "-" if measure.difference is None else f"{measure.difference:+,}",
            Text(explained(measure.explained) + measure.explanation),
        )
    return table


def _device(found: Validation[PoolSizes]) -> str:
    free = "" if found.free_bytes is None else f", {decimal(found.free_bytes)} free before"
    return f"{found.device.name} ({found.device.description}){free}"
