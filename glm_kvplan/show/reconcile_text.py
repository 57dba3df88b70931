"""`kvplan reconcile` in the terminal: predicted beside printed, and the verdict."""

from rich.table import Table
from rich.text import Text

from glm_kvplan.engines.sglang.boot_log.boot import Boot
from glm_kvplan.engines.sglang.boot_log.reconciliation import Reconciliation
from glm_kvplan.engines.sglang.boot_log.rows import Row, telling_digits
from glm_kvplan.show.console import console
from glm_kvplan.show.headline import layout
from glm_kvplan.show.reconcile_words import notes, verdict

_MARKS = {True: ("=", "green"), False: ("x", "red"), None: (" ", "dim")}


def render(answer: Reconciliation, likely: tuple[str, ...], number: int, count: int) -> None:
    """Print where the numbers are from, every number twice, and what the difference means."""
    out, plan = console(), answer.plan
    guess = ""
    if answer.gpu_unknown:
        stands_in = "" if plan.gpu.name == "unknown card" else " only stands in: the log does not tell the card"
        guess = f"{stands_in} (--gpu says it)"
    elif answer.gpu_guessed:
        guess = " (guessed from the log; --gpu says it)"
    out.print(
        Text(
            f"{plan.model.name} on SGLang {plan.profile.release} ({answer.chosen}), {plan.gpu.name}{guess}",
            style="bold",
        )
    )
    out.print(Text(layout(plan), style="dim"))
    out.print(Text(_where(answer.boot, number, count), style="dim"))
    out.print(Text(_memory(answer)))
    for note in notes(answer):
        out.print(Text(f"! {note}", style="yellow"))
    out.print(_table(answer.rows))
    for note, names in _footnotes(answer.rows).items():
        out.print(Text(f"{', '.join(names)}: {note}", style="dim"))
    out.print(Text(verdict(answer), style="green" if answer.explained else "red"))
    for cause in likely:
        out.print(Text(f"  likely: {cause}"))
    if not answer.explained and any(fit.unexplained or fit.refused for fit in answer.fits):
        out.print(Text("  tried: " + "; ".join(_fits(answer)), style="dim"))


def _where(boot: Boot, number: int, count: int) -> str:
    ranks = len(boot.ranks)
    which = f"boot {number} of {count}, " if count > 1 else ""
    return f"{which}{boot.origin}; {ranks} rank" + "s" * (ranks > 1)


def _memory(answer: Reconciliation) -> str:
    memory = answer.sizing.memory
    if memory is None:
        return "no memory reading before and after the load: sizes are held against each other"
    draft = "" if memory.draft_weights_gib is None else f" + {memory.draft_weights_gib:.2f} draft"
    return (
        f"{memory.pre_gib:.2f} GiB free before the load, {memory.available_gib:.2f} after it "
        f"(weights {memory.target_weights_gib:.2f}{draft})"
    )


def _table(rows: tuple[Row, ...]) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    table.add_column("")
    table.add_column("number", no_wrap=True)
    for title in ("predicted", "printed", "difference"):
        table.add_column(title, justify="right", no_wrap=title == "difference", overflow="fold")
    for row in rows:
        mark, style = _MARKS[row.explained]
        name = f"{row.name} ({row.rank})" if row.rank and row.rank not in row.name else row.name
        table.add_row(Text(mark, style=style), name, row.predicted, row.printed, _difference(row))
    return table


def _footnotes(rows: tuple[Row, ...]) -> dict[str, list[str]]:
    noted: dict[str, list[str]] = {}
    for row in rows:
        if row.note and row.name not in noted.setdefault(row.note, []):
            noted[row.note].append(row.name)
    return noted


def _difference(row: Row) -> str:
    if row.difference is None or (row.explained and not (row.note and row.difference)):
        return "" if row.difference is None else "0"
    if isinstance(row.difference, int):
        return f"{row.difference:+,}"
    return f"{row.difference:+.{telling_digits(row.printed, row.difference)}f}"


def _fits(answer: Reconciliation) -> list[str]:
    said = []
    for fit in sorted(answer.fits, key=lambda fit: fit.rank):
        if fit.refused:
            said.append(f"{fit.engine} refuses these flags")
        elif fit.unexplained:
            said.append(f"{fit.engine} leaves {fit.unexplained}")
        else:
            said.append(f"{fit.engine} explains all")
    return said
