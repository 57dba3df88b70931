"""The page of `kvplan diff --base`: a section a file, for a terminal and for a pull request's comment."""

from collections.abc import Iterator

from glm_kvplan.answers.diff.base_answer import ADDED, CHANGED, REMOVED, SAME, UNCLEAR, BaseAnswer, FileDiff, OneSide
from glm_kvplan.answers.diff.diff_page import TWO_ENGINES, change_tables
from glm_kvplan.engines.measures import SHARED
from glm_kvplan.show.page import Block, Cell, Column, Line, Page, Row, Section, Table, Tone
from glm_kvplan.show.said import Said, say

_TONES: dict[str, Tone] = {ADDED: "good", REMOVED: "careful", UNCLEAR: "bad"}


def base_page(answer: BaseAnswer) -> Page:
    sections = tuple(
        section for file in answer.files if file.status != SAME for section in _sections(file, answer.base)
    )
    title = say("from {base} to the work tree", base=answer.base)
    return Page(title, (Line(_summary(answer)),), sections)


def _sections(file: FileDiff, base: str) -> Iterator[Section]:
    title = say("{path}: {status}", path=file.path, status=say(file.status))
    yield Section(tuple(_head(file)), title, tone=_TONES.get(file.status, "strong"))
    if file.diff is not None:
        for table in change_tables(file.diff, (base, say("now"))):
            yield Section((table,))
        if file.diff.warnings:
            yield Section(tuple(Line(warning, "careful") for warning in file.diff.warnings))


def _summary(answer: BaseAnswer) -> Said:
    """`5 deployment files: 1 changed, 1 added, 3 the same`."""
    counted = tuple(
        say("{number} {status}", number=len(found), status=say(status))
        for status in (CHANGED, ADDED, REMOVED, UNCLEAR, SAME)
        if (found := answer.of(status))
    )
    number = len(answer.files)
    template = "{number} deployment file: {counted}" if number == 1 else "{number} deployment files: {counted}"
    return say(template, number=number, counted=counted)


def _head(file: FileDiff) -> Iterator[Block]:
    """What the file is on both sides, or on its one."""
    for text, error in ((say("before"), file.before_error), (say("now"), file.after_error)):
        if error is not None:
            yield Line(say("{side}: {title}", side=text, title=error), "bad")
    if file.alone is not None:
        yield from _alone(file.alone)
    if file.diff is None:
        return
    a, b = file.diff.a.head, file.diff.b.head
    if (a.title, a.layout) == (b.title, b.layout):
        yield from (Line(b.title), Line(b.layout, "muted"))
    else:
        for text, head in ((say("before"), a), (say("now"), b)):
            yield Line(say("{side}: {title}", side=text, title=head.title))
            yield Line(head.layout, "muted")
    if not file.diff.same_engine:
        yield TWO_ENGINES


def _alone(one: OneSide) -> Iterator[Block]:
    yield Line(one.side.head.title)
    yield Line(one.side.head.layout, "muted")
    rows = tuple(
        Row((say(SHARED[name]), Cell(value, kind="binary" if name.endswith("_bytes") else "count")))
        for name, value, *_ in one.measures
    )
    title = say("what it holds, requests of {context} tokens each", context=f"{one.context:,}")
    yield Table((Column(), Column("", "count")), rows, title, head=False)
