"""The page of `kvplan reconcile`: predicted beside printed, and the verdict."""

from collections.abc import Iterator

from glm_kvplan.engines.sglang.answers.reconcile_answer import ReconcileAnswer
from glm_kvplan.engines.sglang.boot_log.log_rows import Row as BootRow
from glm_kvplan.engines.sglang.boot_log.log_rows import telling_digits
from glm_kvplan.show.format import count
from glm_kvplan.show.page import Cell, Column, Line, Page, Row, Section, Table
from glm_kvplan.show.said import Said, say

_MARKS = {True: Cell("=", "good"), False: Cell("x", "bad"), None: Cell("")}


def reconcile_page(answer: ReconcileAnswer) -> Page:
    """Where the numbers are from, every number twice, and what the difference means."""
    head = answer.head
    lead = (Line(head.layout, "muted"), Line(_origin(answer), "muted"), Line(_memory(answer)))
    sections = (
        Section((_table(answer.rows), *_footnotes(answer.rows)), say("Numbers"), quiet=True),
        Section(tuple(_verdict(answer)), say("Verdict"), quiet=True),
    )
    return Page(head.title, lead, sections, answer.warnings, head.notes)


def _origin(answer: ReconcileAnswer) -> Said:
    boot = answer.boot
    template = "boot {number} of {count}, {origin}; {ranks}" if boot.count > 1 else "{origin}; {ranks}"
    return say(template, number=boot.number, count=boot.count, origin=boot.origin, ranks=count(boot.ranks, "rank"))


def _memory(answer: ReconcileAnswer) -> Said:
    memory = answer.memory
    if memory is None:
        return say("no memory reading before and after the load: sizes are held against each other")
    template = "{pre} GiB free before the load, {available} after it (weights {weights}"
    template += ")" if memory.draft_weights_gib is None else " + {draft} draft)"
    return say(
        template,
        pre=f"{memory.pre_gib:.2f}",
        available=f"{memory.available_gib:.2f}",
        weights=f"{memory.target_weights_gib:.2f}",
        draft=f"{memory.draft_weights_gib or 0:.2f}",
    )


def _table(rows: tuple[BootRow, ...]) -> Table:
    columns = (
        Column(),
        Column(say("number"), "code"),
        Column(say("predicted"), "count"),
        Column(say("printed"), "count"),
        Column(say("difference"), "count"),
    )
    return Table(columns, tuple(_row(row) for row in rows))


def _row(row: BootRow) -> Row:
    name = f"{row.name} ({row.rank})" if row.rank and row.rank not in row.name else row.name
    return Row((_MARKS[row.explained], name, row.predicted, row.printed, _difference(row)))


def _difference(row: BootRow) -> str:
    if row.difference is None or (row.explained and not (row.note and row.difference)):
        return "" if row.difference is None else "0"
    if isinstance(row.difference, int):
        return f"{row.difference:+,}"
    return f"{row.difference:+.{telling_digits(row.printed, row.difference)}f}"


def _footnotes(rows: tuple[BootRow, ...]) -> Iterator[Line]:
    noted: dict[str, list[str]] = {}
    for row in rows:
        if row.note and row.name not in noted.setdefault(row.note, []):
            noted[row.note].append(row.name)
    for note, names in noted.items():
        yield Line(say("{names}: {note}", names=", ".join(names), note=_note(note)), "muted")


def _note(note: str) -> Said:
    start, end = "exact with ", " GiB less free"
    if note.startswith(start) and note.endswith(end):
        return say("exact with {gib} GiB less free", gib=note[len(start) : -len(end)])
    return say(note)


def _verdict(answer: ReconcileAnswer) -> Iterator[Line]:
    yield Line(answer.verdict, "good" if answer.explained else "bad")
    for cause in answer.likely_causes:
        yield Line(say("  likely: {cause}", cause=cause))
    fits = answer.engines_tried
    if not answer.explained and any(fit.unexplained or fit.refused for fit in fits):
        yield Line(say("  tried: {fits}", fits="; ".join(_fits(answer))), "muted")


def _fits(answer: ReconcileAnswer) -> Iterator[str]:
    for fit in sorted(answer.engines_tried, key=lambda fit: fit.rank):
        if fit.refused:
            yield f"{fit.engine} refuses these flags"
        elif fit.unexplained:
            yield f"{fit.engine} leaves {fit.unexplained}"
        else:
            yield f"{fit.engine} explains all"
