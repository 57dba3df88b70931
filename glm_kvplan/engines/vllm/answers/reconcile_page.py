"""The page of `kvplan reconcile` of a vLLM log: planned beside printed, and the verdict."""

from collections.abc import Iterator

from glm_kvplan.engines.vllm.answers.reconcile_answer import ReconcileAnswer
from glm_kvplan.engines.vllm.reconciliation import LogRow
from glm_kvplan.show.page import Cell, Column, Line, Page, Row, Section, Table
from glm_kvplan.show.said import Said, say

_MARKS = {"same": Cell("=", "good"), "within": Cell("~", "good"), "differs": Cell("x", "bad")}


def reconcile_page(answer: ReconcileAnswer) -> Page:
    """Where the numbers are from, every number twice, and what the difference means."""
    head = answer.head
    lead = (Line(head.layout, "muted"), Line(_origin(answer), "muted"), Line(_blocks(answer)))
    sections = (
        Section((_table(answer.rows), *_reasons(answer.rows)), say("Numbers"), quiet=True),
        Section(tuple(_verdict(answer)), say("Verdict"), quiet=True),
    )
    return Page(head.title, lead, sections, answer.warnings, head.notes)


def _origin(answer: ReconcileAnswer) -> Said:
    boot = answer.boot
    template = "boot {number} of {count}, {origin}" if boot.count > 1 else "{origin}"
    return say(template, number=boot.number, count=boot.count, origin=boot.origin)


def _blocks(answer: ReconcileAnswer) -> Said:
    if answer.num_blocks is not None:
        template = "the printed size is that of {blocks} blocks of {size} bytes a GPU"
        return say(template, blocks=f"{answer.num_blocks:,}", size=f"{answer.block_bytes:,}")
    if answer.planned_refusal is not None:
        return say("planned: {reason}", reason=answer.planned_refusal)
    return say("no number of blocks of {size} bytes prints this size", size=f"{answer.block_bytes:,}")


def _table(rows: tuple[LogRow, ...]) -> Table:
    columns = (
        Column(),
        Column(say("number")),
        Column(say("planned"), "count"),
        Column(say("printed"), "count"),
        Column(say("unit")),
        Column(say("line"), "count", 1),
    )
    return Table(columns, tuple(_row(row) for row in rows))


def _row(row: LogRow) -> Row:
    planned = "-" if row.planned is None else _number(row.planned, row.unit)
    if row.planned is not None and row.error:
        planned = f"{planned} +-{row.error:.1f}"
    mark = _MARKS.get(row.verdict, Cell(""))
    return Row((mark, say(row.title), planned, _number(row.printed, row.unit), row.unit, row.line))


def _number(value: float, unit: str) -> str:
    return f"{value:,.2f}" if unit in ("GiB", "%", "x") else f"{value:,.0f}"


def _reasons(rows: tuple[LogRow, ...]) -> Iterator[Line]:
    for row in rows:
        yield Line(say("{name}: {why}", name=say(row.title), why=row.explanation), "muted")


def _verdict(answer: ReconcileAnswer) -> Iterator[Line]:
    yield Line(answer.verdict, "good" if answer.explained else "bad")
    for cause in answer.likely_causes:
        yield Line(say("  likely: {cause}", cause=cause))
    tried = [fit for fit in answer.engines_tried if fit.refused or fit.differs]
    if not answer.explained and tried:
        said = (f"{fit.engine} refuses these flags" if fit.refused else f"{fit.engine} leaves {fit.differs}"
                for fit in tried)  # fmt: skip
        yield Line(say("  tried: {fits}", fits="; ".join(said)), "muted")
