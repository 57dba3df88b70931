"""The pages of topics and of one topic, whatever the engine."""

from glm_kvplan.engines.explanation import ExplainAnswer, SideBySide, TopicsAnswer
from glm_kvplan.show.page import Cell, Column, Line, Page, Row, Section, Table, Tone
from glm_kvplan.show.said import say

_READS: dict[str, Tone] = {"right": "good", "wrong": "bad"}


HOW = "kvplan explain TOPIC explains one with the numbers of a deployment: its flags, or -- and its launch"


def topics_page(answer: TopicsAnswer, how: str = HOW) -> Page:
    """The topics, and `how` one of them is asked for."""
    columns = (Column(say("topic"), "code"), Column(say("about")))
    found = tuple(Row((Cell(name, "strong"), say(title))) for name, title in answer.topics.items())
    listed = Section((Table(columns, found, head=False),))
    return Page("", (), (listed, Section((Line(say(how)),))) if how else (listed,))


def topic_page(answer: ExplainAnswer) -> Page:
    """Sentences, what stands side by side, the numbers of both readings, formula and source."""
    sections = [Section(tuple(Line(line) for line in answer.lines))]
    if answer.table is not None:
        sections.append(Section((_side_by_side(answer.table),)))
    if answer.figures:
        columns = (Column(say("reading")), Column(say("value"), "count"), Column(say("unit")), Column(say("says")))
        found = tuple(
            Row((Cell(say(figure.reading), _READS[figure.reading]), figure.value, figure.unit, figure.says))
            for figure in answer.figures
        )
        sections.append(Section((Table(columns, found, head=False),)))
    source = Line(say("source: {source}", source=answer.source), "muted")
    formula = (Line(answer.formula), Line(f"= {answer.numbers}")) if answer.formula else ()
    sections.append(Section((*formula, source)))
    head = answer.head
    lead = Line(say("{title}: {layout}", title=head.title, layout=head.layout), "muted")
    return Page(answer.title, (lead,), tuple(sections), notes=head.notes)


def _side_by_side(table: SideBySide) -> Table:
    columns = (
        Column(table.title),
        *(Column(name, kind) for name, kind in zip(table.columns, table.kinds, strict=True)),
    )
    found = (
        Row((row.name, *row.values, say("here") if row.here else row.note), "strong" if row.here else "")
        for row in table.rows
    )
    if any(row.here or row.note for row in table.rows):
        return Table((*columns, Column()), tuple(found))
    return Table(columns, tuple(row._replace(cells=row.cells[:-1]) for row in found))
