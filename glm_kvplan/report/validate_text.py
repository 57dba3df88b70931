"""`kvplan pools` and `kvplan validate` in the terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.table import Table
from rich.text import Text

from glm_kvplan.pools.attribution import Attribution
from glm_kvplan.pools.rank import Rank
from glm_kvplan.pools.specs import TensorSpec
from glm_kvplan.pools.validate import Validation
from glm_kvplan.report.console import console
from glm_kvplan.report.format import count, decimal, whole
from glm_kvplan.report.headline import headline, layer_span, layout
from glm_kvplan.sizing.sizes import PoolSizes


def render_pools(rank: Rank) -> None:
    """Print every tensor of one rank, then what of it the engine's budget pays for."""
    out = console()
    _head(rank)
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("tensor", overflow="fold", ratio=1)
    for name in ("n", "shape", "dtype"):
        table.add_column(name, justify="right" if name == "n" else "left", no_wrap=True)
    table.add_column("bytes", justify="right", no_wrap=True)
    table.add_column("budget", no_wrap=True)
    pools: dict[str, list[TensorSpec]] = {}
    for spec in rank.tensors:
        pools.setdefault(spec.pool, []).append(spec)
    for pool, specs in pools.items():
        table.add_row(Text(pool, style="bold"))
        for spec in specs:
            table.add_row(
                f" {_label(spec)}", str(spec.count), _shape(spec.shape), spec.dtype, whole(spec.nbytes), _paid(spec)
            )
    out.print(table)
    out.print(_difference_table(rank.attribution))


def render_validation(rank: Rank, found: Validation) -> None:
    """Print predicted beside taken for every tensor, the three measures, and the verdict."""
    out = console()
    _head(rank)
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
        table.add_row(_label(row.spec), whole(row.spec.nbytes), taken, mark)
    out.print(table)
    for row in found.rows:
        if not row.equal and row.taken is not None:
            spec, taken_ = row.spec, row.taken
            out.print(
                Text(f"! {spec.name}: {spec.count} x {spec.dtype} {_shape(spec.shape)} predicted, ")
                + Text(f"{taken_.tensors} x {taken_.dtype} {_shape(taken_.shape)} found"),
                style="red",
            )
    for name in found.unexpected:
        out.print(Text(f"! not predicted: {name}", style="red"))
    out.print(_measure_table(found))
    out.print(Text(verdict(found), style="bold green" if found.ok else "bold red"))


def sizes_line(sizes: PoolSizes) -> str:
    """`1,000,000 tokens, 200 state slots, 40 running requests`."""
    return (
        f"{count(sizes.tokens, 'token')}, {count(sizes.state_slots, 'state slot')}, "
        f"{count(sizes.running_requests, 'running request')}"
    )


def verdict(found: Validation) -> str:
    """The verdict in one line; it rests on the tensors' own bytes alone."""
    if found.ok:
        return f"equal to the byte: {whole(found.taken)} B in {sum(row.spec.count for row in found.rows)} tensors"
    wrong = sum(not row.equal for row in found.rows) + len(found.unexpected)
    return f"not equal: {wrong} of {len(found.rows)} predictions fail"


@contextmanager
def progress_bar() -> Iterator[tuple[Callable[[int], None], Callable[[int], None]]]:
    """Two functions, `begin(total)` and `advance(nbytes)`, drawn on standard error where that is a terminal."""
    bar = Progress(
        TextColumn("allocating"),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    bar.disable = not bar.console.is_terminal
    with bar:
        task = bar.add_task("allocating", total=None)
        yield (
            lambda total: bar.update(task, total=total),
            lambda nbytes: bar.advance(task, nbytes),
        )


def _head(rank: Rank) -> None:
    out = console()
    out.print(Text(headline(rank.plan), style="bold"))
    out.print(Text(layout(rank.plan), style="dim"))
    if rank.plan.deployment.pp_size > 1:
        out.print(Text(f"pipeline rank {rank.pp_rank}: {layer_span(rank.stage)}", style="dim"))
    out.print(Text(f"one rank: {sizes_line(rank.sizes)}"))
    if rank.sizes != rank.asked:
        out.print(
            Text(f"! {whole(rank.asked.running_requests)} requests asked; the tokens and state slots admit fewer"),
            style="yellow",
        )


def _difference_table(attribution: Attribution) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("device memory of one rank", no_wrap=True)
    table.add_column("bytes", justify="right", no_wrap=True)
    table.add_column("why", overflow="fold")
    table.add_row("charged to the engine's budget", whole(attribution.charged), "")
    for part in attribution.parts:
        table.add_row(f"  {part.name}", f"{part.nbytes:+,}", Text(part.reason, style="dim"))
    table.add_row("allocated", whole(attribution.allocated), decimal(attribution.allocated), style="bold")
    if attribution.rest:
        table.add_row("unexplained", f"{attribution.rest:+,}", "a bug in kvplan", style="bold red")
    return table


def _measure_table(found: Validation) -> Table:
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


def explained(state: bool | None) -> str:
    """A word in front of an explanation: nothing where it holds or where nothing can be said."""
    return "NOT explained: " if state is False else ""


def _device(found: Validation) -> str:
    free = "" if found.free_bytes is None else f", {decimal(found.free_bytes)} free before"
    return f"{found.device.name} ({found.device.description}){free}"


def _label(spec: TensorSpec) -> str:
    return spec.name if spec.place == "device" else f"{spec.name} ({spec.place})"


def _shape(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


def _paid(spec: TensorSpec) -> str:
    return "pays" if spec.charged else "-"
