"""`kvplan pools` in the terminal."""

from rich.table import Table
from rich.text import Text

from glm_kvplan.engines.sglang.sizing.attribution import Attribution
from glm_kvplan.engines.sglang.sizing.rank_pools import RankPools
from glm_kvplan.show.console import console
from glm_kvplan.show.format import decimal, whole
from glm_kvplan.show.headline import headline, layer_span, layout
from glm_kvplan.show.rank_words import label, shape, sizes_line
from glm_kvplan.tensor import TensorSpec


def render(pools: RankPools) -> None:
    """Print every tensor of one rank, then what of it the engine's budget pays for."""
    out = console()
    render_head(pools)
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("tensor", overflow="fold", ratio=1)
    for name in ("n", "shape", "dtype"):
        table.add_column(name, justify="right" if name == "n" else "left", no_wrap=True)
    table.add_column("bytes", justify="right", no_wrap=True)
    table.add_column("budget", no_wrap=True)
    held: dict[str, list[TensorSpec]] = {}
    for spec in pools.tensors:
        held.setdefault(spec.component, []).append(spec)
    for component, specs in held.items():
        table.add_row(Text(component, style="bold"))
        for spec in specs:
            table.add_row(
                f" {label(spec)}", str(spec.count), shape(spec.shape), spec.dtype, whole(spec.nbytes), _paid(spec)
            )
    out.print(table)
    out.print(_difference_table(pools.attribution))


def render_head(pools: RankPools) -> None:
    """Print the plan, the rank's layers where there are several stages, and its sizes."""
    out = console()
    out.print(Text(headline(pools.plan), style="bold"))
    out.print(Text(layout(pools.plan), style="dim"))
    if pools.plan.deployment.pp_size > 1:
        out.print(Text(f"pipeline rank {pools.pp_rank}: {layer_span(pools.stage)}", style="dim"))
    out.print(Text(f"one rank: {sizes_line(pools.sizes)}"))
    if pools.sizes != pools.asked:
        out.print(
            Text(f"! {whole(pools.asked.running_requests)} requests asked; the tokens and state slots admit fewer"),
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


def _paid(spec: TensorSpec) -> str:
    return "pays" if spec.charged else "-"
