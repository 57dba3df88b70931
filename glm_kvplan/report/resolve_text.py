"""`kvplan resolve` in the terminal."""

from rich.table import Table
from rich.text import Text

from glm_kvplan.planner import Plan
from glm_kvplan.report.console import console
from glm_kvplan.report.headline import headline, layout


def render(plan: Plan) -> None:
    """Print one row a flag: value, whether it was given, the reason and where the engine decides it."""
    out = console()
    out.print(Text(headline(plan), style="bold"))
    out.print(Text(layout(plan), style="dim"))
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("flag", no_wrap=True)
    table.add_column("value", overflow="fold")
    table.add_column("from", no_wrap=True)
    table.add_column("why", overflow="fold")
    for choice in plan.choices:
        why = Text(choice.reason)
        if choice.source:
            why.append(f" ({choice.source})", style="dim")
        origin = Text("given" if choice.given else "engine", style="bold" if choice.given else "dim")
        table.add_row(choice.flag, _shown(choice.value), origin, why)
    out.print(table)


def _shown(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "on" if value else "off"
    return f"{value:,}" if isinstance(value, int) else str(value)
