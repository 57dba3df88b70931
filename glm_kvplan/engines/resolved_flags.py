"""What an engine makes of its flags, and the page of it: the same for every engine."""

from typing import NamedTuple

from glm_kvplan.engines.answer_head import Head
from glm_kvplan.engines.flag import Choice
from glm_kvplan.show.format import shown
from glm_kvplan.show.page import Cell, Column, Line, Page, Row, Section, Table
from glm_kvplan.show.said import Text, say


class ResolveAnswer(NamedTuple):
    """One choice a flag, with its reason and source."""

    head: Head
    choices: tuple[Choice, ...]
    warnings: tuple[Text, ...] = ()


def resolved_page(answer: ResolveAnswer) -> Page:
    """Every flag with its value and where it comes from, the reason and its source."""
    head = answer.head
    section = Section((choices_table(answer.choices),), say("The resolved flags, with reasons"), quiet=True)
    return Page(head.title, (Line(head.layout, "muted"),), (section,), answer.warnings, head.notes)


def choices_table(choices: tuple[Choice, ...]) -> Table:
    columns = (
        Column(say("flag"), "code"),
        Column(say("value")),
        Column(say("from")),
        Column(say("reason"), "note"),
        Column(say("source"), "note"),
    )
    return Table(columns, tuple(_row(choice) for choice in choices), head=False)


def _row(choice: Choice) -> Row:
    whose = say("given") if choice.given else Cell(say("engine"), "muted")
    reason = "" if choice.reason == "given" else choice.reason
    return Row((choice.flag, shown(choice.value), whose, reason, choice.source), "strong" if choice.given else "")
