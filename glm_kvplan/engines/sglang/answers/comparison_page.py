"""The page of two releases of SGLang beside each other: their fields, and what that does to two deployments."""

from glm_kvplan.engines.changes import Change
from glm_kvplan.engines.sglang.answers.release_comparison import EngineComparison
from glm_kvplan.show.format import decimal
from glm_kvplan.show.page import Cell, Column, Page, Row, Section, Table
from glm_kvplan.show.said import say


def comparison_page(answer: EngineComparison) -> Page:
    """The fields that differ, then what that does to two typical deployments, the most bytes first."""
    before, after = answer.before, answer.after
    columns = (Column(say("profile field"), "code"), Column(before), Column(after))
    fields = tuple(Row((each.name, _word(each.before), _word(each.after))) for each in answer.fields)
    sections = [Section((Table(columns, fields),), say("Profile fields"), quiet=True)]
    for compared in answer.deployments:
        title = say(
            "{deployment}, {requests} requests of {context} tokens",
            deployment=compared.deployment,
            requests=answer.workload.concurrency,
            context=f"{answer.workload.context:,}",
        )
        sections.append(Section((_change_table(compared.changes, before, after),), title))
    return Page(say("SGLang {before} → {after}", before=before, after=after), (), tuple(sections))


def _change_table(found: tuple[Change, ...], before: str, after: str) -> Table:
    """One row a change: what, its value before and after, the bytes it adds to the fullest rank."""
    columns = (Column(say("what")), Column(before), Column(after), Column(say("bytes on a rank"), "byte_change"))
    return Table(columns, tuple(_change_row(change) for change in found))


def _change_row(change: Change) -> Row:
    sized = change.kind in ("tensor", "rank")
    values = [decimal(value) if sized and isinstance(value, int) else _word(value) for value in change[2:4]]
    return Row((change.name, *values, Cell(change.nbytes or None)))


def _word(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
