"""The pages of topics and of one topic, whatever the engine."""

from glm_kvplan.engines.explanation import ExplainAnswer, TopicsAnswer
from glm_kvplan.show.page import Cell, Column, Line, Page, Row, Section, Table
from glm_kvplan.show.said import say

_READS = {"right": "good", "wrong": "bad"}


def topics_page(answer: TopicsAnswer) -> Page:
    columns = (Column(say("topic"), "code"), Column(say("about")))
    found = tuple(Row((Cell(name, "strong"), say(title))) for name, title in answer.topics.items())
    return Page("", (), (Section("topics", (Table(columns, found, head=False),)),))


def topic_page(answer: ExplainAnswer) -> Page:
    """Sentences, the numbers of both readings, formula and source."""
    sections = [Section("lines", tuple(Line(line) for line in answer.lines))]
    if answer.figures:
        columns = (Column(say("reading")), Column(say("value"), "count"), Column(say("unit")), Column(say("says")))
        found = tuple(
            Row((Cell(say(figure.reading), _READS[figure.reading]), figure.value, figure.unit, figure.says))
            for figure in answer.figures
        )
        sections.append(Section("figures", (Table(columns, found, head=False),)))
    source = Line(say("source: {source}", source=answer.source), "muted")
    formula = (Line(answer.formula), Line(f"= {answer.numbers}")) if answer.formula else ()
    sections.append(Section("formula", (*formula, source)))
    head = answer.head
    lead = Line(say("{title}: {layout}", title=head.title, layout=head.layout), "muted")
    return Page(answer.title, (lead,), tuple(sections), notes=head.notes)
