"""A sweep in the terminal: a limited table, with the reasons of refused points below it."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from glm_kvplan.answers.sweep.columns import AT, RESULTS, Column
from glm_kvplan.engines.engine import Given
from glm_kvplan.show.console import HEADROOM_STYLE, console
from glm_kvplan.show.format import whole

# Column and its title. Where the terminal is narrow the first of _LEFT_OUT go first.
_SHOWN = {
    "max_total_num_tokens": "tokens",
    "max_mamba_cache_size": "slots",
    "max_running_requests": "requests",
    "free_gib": "free GiB",
    "headroom": "headroom",
    "served": "served",
    "served_bound_by": "bound by",
}
_OF_FRONTIER = {"served": "requests at once", "served_bound_by": "bound by", "free_gib": "free GiB"}
_LEFT_OUT = ("headroom", "max_mamba_cache_size", "free_gib", "served_bound_by", "max_running_requests")
_GAP = 2


class _Shown(NamedTuple):
    column: Column
    title: str
    cells: list[str]

    @property
    def width(self) -> int:
        """The least width that cuts no number and no word."""
        words = self.title.split() if self.column.kind in ("int", "float") else self.title.split() + self._words()
        numbers = self.cells if self.column.kind in ("int", "float") else []
        return max(map(len, [*words, *numbers]), default=0)

    @property
    def natural(self) -> int:
        """The width that breaks no line."""
        return max(map(len, [self.title, *self.cells]))

    def _words(self) -> list[str]:
        return [word for cell in self.cells for word in cell.split()]


def render(
    given: Given,
    columns: Sequence[Column],
    rows: Sequence[tuple[Any, ...]],
    *,
    of_frontier: bool = False,
    more: str = "",
    out: Console | None = None,
) -> None:
    """Print the rows as a table, axis columns first; `more` says what is not shown."""
    out = out or console()
    axes = len(columns) - len(RESULTS)
    out.print(Text(_headline(given, columns[:axes]), style="bold"))
    reasons: dict[str, int] = {}
    for row in rows:
        if row[-1] is not None:
            reasons.setdefault(row[-1], len(reasons) + 1)
    results = _OF_FRONTIER if of_frontier else _SHOWN
    first = next(iter(results))
    shown = [
        _Shown(column, column.name.replace("_", " "), [_cell(row[at], column) for row in rows])
        for at, column in enumerate(columns[:axes])
    ]
    for name, title in results.items():
        column = RESULTS[AT[name]]
        cells = [_result(row, axes + AT[name], column, reasons, name == first) for row in rows]
        shown.append(_Shown(column, title, cells))
    left_out = _narrow(shown, out.width)
    out.print(_table(shown, _widths(shown, out.width), rows))
    for text, number in reasons.items():
        out.print(Text(f"[{number}] {text}", style="red"))
    if any(row[axes + AT["certainty"]] == "estimated" for row in rows):
        out.print(Text("memory is estimated: --pre-gib and --available-gib make the sizes exact", style="dim"))
    if any(row[axes + AT["certainty"]] == "upper bound" for row in rows):
        out.print(Text("the draft model is not known: every size is an upper bound (--draft-config)", style="yellow"))
    if left_out:
        out.print(Text(f"left out for want of width: {', '.join(left_out)}", style="dim"))
    if more:
        out.print(Text(more, style="dim"))


def _narrow(shown: list[_Shown], width: int) -> list[str]:
    """Take columns out until the rest can be shown in `width`; their titles."""
    left_out = []
    for name in _LEFT_OUT:
        if sum(part.width + _GAP for part in shown) <= width:
            break
        for part in shown:
            if part.column == RESULTS[AT[name]]:
                shown.remove(part)
                left_out.append(part.title)
                break
    return left_out


def _widths(shown: Sequence[_Shown], width: int) -> list[int]:
    """The least widths, and what is to spare given out from the left. Rich alone would cut words before it folds."""
    spare = width - sum(part.width + _GAP for part in shown)
    found = []
    for part in shown:
        more = max(0, min(spare, part.natural - part.width))
        spare -= more
        found.append(part.width + more)
    return found


def _table(shown: Sequence[_Shown], widths: Sequence[int], rows: Sequence[tuple[Any, ...]]) -> Table:
    table = Table(box=None, padding=(0, _GAP, 0, 0), header_style="bold")
    for part, width in zip(shown, widths, strict=True):
        number = part.column.kind in ("int", "float")
        table.add_column(part.title, justify="right" if number else "left", overflow="fold", width=width)
    for at, row in enumerate(rows):
        refused = row[-1] is not None
        cells = []
        for part in shown:
            style = HEADROOM_STYLE.get(part.cells[at], "") if part.column.name == "headroom" else ""
            cells.append(Text(part.cells[at], style="red" if refused and "refused" in part.cells[at] else style))
        table.add_row(*cells)
    return table


def _result(row: tuple[Any, ...], at: int, column: Column, reasons: dict[str, int], first: bool) -> str:
    if row[-1] is not None:
        return f"refused [{reasons[row[-1]]}]" if first else ""
    text = _cell(row[at], column)
    return text.replace("_", " ") if column.kind == "text" else text


def _headline(given: Given, axes: Sequence[Column]) -> str:
    varied = {column.name for column in axes}
    engine = "SGLang" if "engine" in varied else f"SGLang {given.profile.release}"
    assumed = " (assumed: no --gpu given)" if given.gpu_assumed else ""
    gpu = "" if "gpu" in varied else f", {given.gpu.name}{assumed}"
    return f"{given.model.name} on {engine}{gpu}"


def _cell(value: Any, column: Column) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, int):
        return whole(value)
    if isinstance(value, float):
        return f"{value:.1f}" if column.name == "free_gib" else f"{value:.6g}"
    return str(value)
