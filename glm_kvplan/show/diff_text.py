"""`kvplan diff` in the terminal."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from glm_kvplan.answers.diff.starts import Side
from glm_kvplan.engines.changes import Change
from glm_kvplan.show.console import console
from glm_kvplan.show.format import binary
from glm_kvplan.show.headline import headline, layout

_TITLES = {
    "pool": "memory of the fullest rank",
    "size": "what the engine sizes",
    "limit": "what binds",
    "unit": "bytes of one unit",
    "flag": "resolved flags",
}


def render(a: Side, b: Side, found: Sequence[Change]) -> None:
    """Print what changes, a table for each kind, the most bytes first."""
    out = console()
    for mark, side in (("A", a), ("B", b)):
        out.print(Text(f"{mark}  {side.label}: {headline(side.plan)}", style="bold"))
        out.print(Text(f"   {layout(side.plan)}", style="dim"))
    if not found:
        out.print(Text("\nnothing that touches memory changes"))
    for kind, title in _TITLES.items():
        rows = [change for change in found if change.kind == kind]
        if rows:
            out.print(_table(kind, title, rows))


def _table(kind: str, title: str, rows: Sequence[Change]) -> Table:
    table = Table(title=f"\n{title}", title_justify="left", box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("", no_wrap=True)
    numbers = kind in ("pool", "size", "unit")
    for name in ("A", "B"):
        table.add_column(name, justify="right" if numbers else "left", overflow="fold")
    table.add_column("change" if numbers else "why", justify="right" if numbers else "left", overflow="fold")
    for change in rows:
        if kind == "pool":
            last = Text(_signed(change.nbytes), style="red" if change.nbytes > 0 else "green")
            table.add_row(change.name, _bytes(change.before), _bytes(change.after), last)
        else:
            last = Text(_difference(change)) if numbers else Text(change.why, style="dim")
            table.add_row(change.name, _value(change.before), _value(change.after), last)
    return table


def _bytes(value: object) -> str:
    return binary(value) if isinstance(value, int) else _value(value)


def _signed(nbytes: int) -> str:
    return f"{'+' if nbytes > 0 else ''}{binary(nbytes)}"


def _difference(change: Change) -> str:
    if isinstance(change.before, int) and isinstance(change.after, int):
        return f"{change.after - change.before:+,}"
    return ""


def _value(value: object) -> str:
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:g}" if isinstance(value, float) else str(value)
