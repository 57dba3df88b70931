"""The page of `kvplan diff`: a table for each kind of change, the most bytes first."""

from collections.abc import Iterator

from glm_kvplan.answers.diff.diff_answer import DiffAnswer, SideShown, notes_of
from glm_kvplan.engines.changes import Change
from glm_kvplan.engines.measures import SHARED
from glm_kvplan.show.format import count
from glm_kvplan.show.page import Cell, Column, Line, Page, Row, Section, Table
from glm_kvplan.show.said import Said, Text, say

_TITLES = {
    "served": "what it holds, requests of {context} tokens each",
    "pool": "memory of the fullest rank",
    "size": "what the engine sizes",
    "limit": "what binds",
    "unit": "bytes of one unit",
    "flag": "resolved flags",
}
TWO_ENGINES = Line(say("two engines: what both hold is compared and what ends it, not their memory and flags"), "muted")
_NUMBERS = ("served", "size", "unit")


def diff_page(answer: DiffAnswer) -> Page:
    sections = tuple(Section((table._replace(title=""),), table.title) for table in change_tables(answer, ("A", "B")))
    nothing = Section((Line(say("nothing that touches memory changes")),))
    lead = [_layout(answer.a), Line(_name("B", answer.b), "strong"), _layout(answer.b)]
    if not answer.same_engine:
        lead.append(TWO_ENGINES)
    equal = [count(answer.equal_numbers, "number")]
    if answer.equal_flags is not None:
        equal.append(count(answer.equal_flags, "resolved flag"))
    last = [Line(say("the same on both: {equal}", equal=tuple(equal)), "muted")]
    if unsure := tuple(name for name, side in (("A", answer.a), ("B", answer.b)) if side.certainty == "estimated"):
        last.append(Line(say("sizes, requests and free memory of {sides} are estimated", sides=unsure), "muted"))
    alike = Section(tuple(last))
    return Page(
        _name("A", answer.a), tuple(lead), (*(sections or (nothing,)), alike), answer.warnings, notes_of(answer)
    )


def change_tables(answer: DiffAnswer, sides: tuple[Text, Text]) -> Iterator[Table]:
    """A table for each kind of change with its title; `sides` are the titles of the columns."""
    for kind, title in _TITLES.items():
        found = [change for change in answer.changes if change.kind == kind]
        if found:
            yield _table(kind, found, sides)._replace(title=say(title, context=f"{answer.context:,}"))


def _name(mark: str, side: SideShown) -> Said:
    return say("{mark}  {label}: {title}", mark=mark, label=side.label, title=side.head.title)


def _layout(side: SideShown) -> Line:
    return Line(say("   {layout}", layout=side.head.layout), "muted")


def _table(kind: str, found: list[Change], sides: tuple[Text, Text]) -> Table:
    a, b = sides
    if kind == "pool":
        columns = (Column(), Column(a, "binary"), Column(b, "binary"), Column(say("change"), "binary_change"))
        return Table(columns, tuple(_pool(change) for change in found))
    if kind in _NUMBERS:
        columns = (Column(), Column(a, "count"), Column(b, "count"), Column(say("change"), "change"))
        return Table(columns, tuple(_number(change) for change in found))
    columns = (Column("", "code"), Column(a), Column(b), Column(say("why")))
    return Table(columns, tuple(_word(change) for change in found))


def _pool(change: Change) -> Row:
    difference = Cell(change.nbytes, "bad" if change.nbytes > 0 else "good")
    return Row((say(change.name), _value(change.before), _value(change.after), difference))


def _number(change: Change) -> Row:
    before, after = change.before, change.after
    difference = after - before if isinstance(before, int) and isinstance(after, int) else None
    if change.kind != "served":
        return Row((change.name, _value(before), _value(after), difference))
    if change.name.endswith("_bytes"):
        sides = (Cell(_value(each), kind="binary") for each in (before, after))
        return Row((say(SHARED[change.name]), *sides, Cell(difference, kind="binary_change")))
    return Row((say(SHARED[change.name]), _value(before), _value(after), difference))


def _word(change: Change) -> Row:
    before, after = (
        f"{value:,}" if isinstance(value, int) else _value(value) for value in (change.before, change.after)
    )
    return Row((change.name, before, after, Cell(change.why, "muted")))


def _value(value: object) -> str | int | float:
    return value if isinstance(value, str | int | float) else "-"
