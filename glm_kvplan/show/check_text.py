"""`kvplan check` in the terminal."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from glm_kvplan.answers.check.checking import Checked
from glm_kvplan.answers.check.findings import Finding
from glm_kvplan.show.check_words import advice, amount, binding, summary
from glm_kvplan.show.console import console
from glm_kvplan.show.headline import headline
from glm_kvplan.show.printable import terminal

_STYLE = {"holds": "green", "fails": "bold red", "warns": "yellow", "tolerated": "dim"}
_MARK = {"holds": "holds", "fails": "FAILS", "warns": "warns", "tolerated": "tolerated"}


def render(checked: Sequence[Checked]) -> None:
    """Print every file with its expectations; what falls short with its limit and the smallest changes."""
    out = console()
    for one in checked:
        _file(one)
    if len(checked) > 1:
        failed = any(not one.holds for one in checked)
        out.print(Text(summary(checked), style="bold red" if failed else "bold green"))


def _file(one: Checked) -> None:
    out = console()
    if one.error is not None:
        out.print(Text(f"{terminal(one.path)}:{one.line}", style="bold"), Text(one.verdict, style="bold red"))
        out.print(Text(f"  {terminal(one.error)}\n"))
        return
    head = Text(terminal(one.path), style="bold")
    head.append(f" {one.verdict}", style=_STYLE["holds" if one.holds else "fails"])
    out.print(head)
    if one.plan is not None:
        out.print(Text(terminal(headline(one.plan)), style="dim"))
    expectations = [finding for finding in one.found if finding.wanted is not None]
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("", "expected", "wanted", "comes out"):
        table.add_column(name, no_wrap=name != "comes out", overflow="fold")
    for finding in expectations:
        table.add_row(
            Text(_MARK[finding.status], style=_STYLE[finding.status]),
            finding.name,
            amount(finding.name, finding.wanted),
            amount(finding.name, finding.found),
        )
    out.print(table)
    for finding in one.found:
        _details(finding)
    for note in one.notes:
        out.print(Text(f"note: {terminal(note)}", style="dim"))
    out.print()


def _details(finding: Finding) -> None:
    out = console()
    style = _STYLE[finding.status]
    if finding.wanted is None:
        label = "warning" if finding.status == "warns" else "tolerated"
        out.print(Text(f"{label}, {finding.name}: {terminal(finding.note or finding.why)}", style=style))
        return
    if finding.status == "holds":
        return
    if finding.status == "tolerated":
        out.print(Text(f"tolerated, {finding.name}: {terminal(finding.note)}", style=style))
        return
    line = Text(f"{finding.name}: ", style=style)
    line.append(terminal(binding(finding)), style="default not bold")
    out.print(line)
    for text in advice(finding):
        out.print(Text(f"  {terminal(text)}"))
