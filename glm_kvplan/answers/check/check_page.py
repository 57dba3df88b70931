"""The page of `kvplan check`: every file with its expectations; what falls short with the smallest changes."""

from collections.abc import Iterator

from glm_kvplan.answers.check.check_answer import CheckAnswer, FileChecked
from glm_kvplan.answers.check.finding_words import advice, amount, binding, caused, comes_out, summary
from glm_kvplan.answers.check.findings import Finding
from glm_kvplan.show.page import Block, Cell, Column, Line, Page, Row, Section, Table, Tone
from glm_kvplan.show.said import say

_TONES: dict[str, Tone] = {"holds": "good", "fails": "bad", "warns": "careful", "tolerated": "muted"}
_MARKS = {"holds": "holds", "fails": "FAILS", "warns": "warns", "tolerated": "tolerated"}


def check_page(answer: CheckAnswer) -> Page:
    failed = any(file.verdict != "holds" for file in answer.files)
    lead = (Line(summary(answer), "bad" if failed else "good"),) if len(answer.files) > 1 else ()
    sections = tuple(
        Section(
            tuple(_file(file)),
            say("{path}: {verdict}", path=_place(file), verdict=say(file.verdict)),
            tone="good" if file.verdict == "holds" else "bad",
        )
        for file in answer.files
    )
    return Page("kvplan check", lead, sections, quiet=True)


def _place(file: FileChecked) -> str:
    return file.path if file.error is None else f"{file.path}:{file.error.line}"


def _file(file: FileChecked) -> Iterator[Block]:
    if file.error is not None:
        yield Line(say("  {message}", message=file.error.message))
        return
    if file.plan is not None:
        yield Line(file.plan.title, "muted")
    columns = (Column(), Column(say("expected"), "code"), Column(say("wanted")), Column(say("comes out")))
    yield Table(columns, tuple(_row(finding) for finding in file.findings if finding.wanted is not None))
    for finding in file.findings:
        yield from _details(finding)
    for note in file.notes:
        yield Line(say("note: {note}", note=note), "muted")


def _row(finding: Finding) -> Row:
    mark = Cell(say(_MARKS[finding.status]), _TONES[finding.status])
    return Row((mark, finding.name, amount(finding.name, finding.wanted), comes_out(finding)))


def _details(finding: Finding) -> Iterator[Line]:
    tone, note = _TONES[finding.status], finding.note
    if finding.status == "holds":
        return
    if finding.wanted is None and finding.status == "warns":
        yield Line(say("warning, {name}: {why}", name=finding.name, why=note or finding.why), tone)
    elif finding.wanted is None or finding.status == "tolerated":
        yield Line(say("tolerated, {name}: {why}", name=finding.name, why=note or finding.why), tone)
    else:
        yield Line(say("{name}: {why}", name=finding.name, why=binding(finding)))
        for text in (*advice(finding), *caused(finding)):
            yield Line(say("  {text}", text=text))
