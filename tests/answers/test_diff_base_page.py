"""What the page of `kvplan diff --base` says of each file: its status and tone, both sides, and what changes."""

from functools import cache
from typing import Any

from glm_kvplan.answers.diff.base_answer import ADDED, CHANGED, REMOVED, SAME, UNCLEAR, BaseAnswer, FileDiff, OneSide
from glm_kvplan.answers.diff.base_page import base_page
from glm_kvplan.answers.diff.diff_answer import DiffAnswer, SideShown, answer_diff, notes_of
from glm_kvplan.answers.diff.diff_page import diff_page
from glm_kvplan.answers.diff.starts import Side
from glm_kvplan.certainty import Certainty
from glm_kvplan.engines.changes import Change
from glm_kvplan.engines.measures import Measure
from glm_kvplan.engines.planner import plan
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.show.page import Cell, Line, Page, Section, Table

READ = MemoryGiven(138.5, 84.0)


@cache
def side(label: str = "a", engine: str = "0.5.23", **flags: Any) -> Side:
    made = plan(flags or {"tp_size": 8}, gpu="h200", engine=engine)
    return Side(label, made, made.started(READ, 8192))


def diff(*changes: Change, after: str = "0.5.23") -> DiffAnswer:
    return answer_diff(side(), side("b", after))._replace(changes=changes)


def page(*files: FileDiff) -> Page:
    return base_page(BaseAnswer("1.0", "main", "0" * 40, 0, files))


def lines(*sections: Section) -> list[tuple[str, str]]:
    return [(str(block.text), block.tone) for each in sections for block in each.blocks if isinstance(block, Line)]


def table(of: Page) -> Table:
    (found,) = (block for section in of.sections for block in section.blocks if isinstance(block, Table))
    return found


SLOTS = Change("size", "max_mamba_cache_size", 700, 650, 0)


def test_a_section_a_file_that_is_not_the_same() -> None:
    files = [FileDiff(status, status) for status in (CHANGED, SAME, ADDED, REMOVED, UNCLEAR)]
    found = page(*files)
    assert str(found.title) == "from main to the work tree"
    assert [(str(each.title), each.tone) for each in found.sections] == [
        (f"{CHANGED}: changed", "strong"), (f"{ADDED}: added", "good"), (f"{REMOVED}: removed", "careful"),
        (f"{UNCLEAR}: not comparable", "bad"),
    ]  # fmt: skip
    (summary,) = found.lead
    assert str(summary.text) == "5 deployment files: 1 changed, 1 added, 1 removed, 1 not comparable, 1 the same"
    assert str(page(files[1]).lead[0].text) == "1 deployment file: 1 the same"


def test_both_sides_are_named_once_where_they_are_alike() -> None:
    """Their warnings follow the changes."""
    same = diff(SLOTS)._replace(warnings=("careful with that",))
    head, changes, warnings = page(FileDiff("x", CHANGED, same)).sections
    title, layout = same.a.head.title, same.a.head.layout
    assert lines(head) == [(str(title), ""), (str(layout), "muted")]
    assert lines(warnings) == [("careful with that", "careful")]
    assert [str(column.title) for column in table(page(FileDiff("x", CHANGED, same))).columns[1:3]] == ["main", "now"]
    assert len(page(FileDiff("x", CHANGED, diff(SLOTS))).sections) == 2 and not changes.title


def test_both_sides_are_named_where_they_differ() -> None:
    other = diff(SLOTS, after="0.5.22")
    (head, _) = page(FileDiff("x", CHANGED, other)).sections
    assert [text.partition(":")[0] for text, tone in lines(head) if tone == ""] == ["before", "now"]
    assert [text for text, tone in lines(head) if tone == "muted"] == [str(other.a.head.layout)] * 2
    two = answer_diff(side(), side("b", "vllm-0.33.0", tensor_parallel_size=8))
    assert not two.same_engine and lines(page(FileDiff("x", CHANGED, two)).sections[0])[-1][0].startswith(
        "two engines:"
    )


def test_a_file_of_one_side_says_what_it_holds_and_why_the_other_does_not() -> None:
    measures = (
        Measure("requests_at_context", 64, "request", "deployment"),
        Measure("cache_bytes", 5, "byte", "deployment"),
    )
    alone = OneSide(SideShown("a", diff().a.head, "derived"), 8192, measures)
    (section,) = page(FileDiff("x", UNCLEAR, None, alone, "it was broken", None)).sections
    assert lines(section)[0] == ("before: it was broken", "bad") and lines(section)[2][1] == "muted"
    shown = table(page(FileDiff("x", UNCLEAR, None, alone, "it was broken", None)))
    assert str(shown.title) == "what it holds, requests of 8,192 tokens each" and not shown.head
    cells = [row.cells[1] for row in shown.rows]
    assert cells == [Cell(64, kind="count"), Cell(5, kind="binary")]
    (now,) = page(FileDiff("x", UNCLEAR, None, None, None, "it is broken")).sections
    assert lines(now) == [("now: it is broken", "bad")]


# --- the page of two sides -------------------------------------------------------------------------------------------


def rows(*changes: Change) -> list[tuple[Any, ...]]:
    return [row.cells for row in table(diff_page(diff(*changes))).rows]


def test_a_pool_that_grows_is_bad() -> None:
    found = rows(Change("pool", "states", 5, 9, 4), Change("pool", "rows", 9, 5, -4), Change("pool", "same", 5, 5, 0))
    assert [(str(name), *rest) for name, *rest in found] == [
        ("states", 5, 9, Cell(4, "bad")), ("rows", 9, 5, Cell(-4, "good")), ("same", 5, 5, Cell(0, "good")),
    ]  # fmt: skip


def test_a_number_has_its_difference_and_bytes_are_said_as_bytes() -> None:
    assert rows(SLOTS) == [("max_mamba_cache_size", 700, 650, -50)]
    assert rows(Change("size", "x", None, 650, 0)) == [("x", "-", 650, None)]
    ((_, before, after, moved),) = rows(Change("served", "cache_bytes", 5, 9, 0))
    assert (before, after, moved) == (Cell(5, kind="binary"), Cell(9, kind="binary"), Cell(4, kind="binary_change"))
    ((name, *numbers),) = rows(Change("served", "requests_at_context", 5, 9, 0))
    assert numbers == [5, 9, 4] and "request" in str(name)


def test_a_flag_has_its_reason() -> None:
    assert rows(Change("flag", "page_size", 1024, None, 0, why="given")) == [
        ("page_size", "1,024", "-", Cell("given", "muted"))
    ]


def test_the_columns_of_two_sides() -> None:
    pool, size, flag = Change("pool", "x", 1, 2, 1), SLOTS, Change("flag", "y", 1, 2, 0)
    for change, kinds in (
        (pool, ["text", "binary", "binary", "binary_change"]),
        (size, ["text", "count", "count", "change"]),
        (flag, ["code", "text", "text", "text"]),
    ):
        columns = table(diff_page(diff(change))).columns
        assert [column.kind for column in columns] == kinds
        assert [str(column.title) for column in columns[1:3]] == ["A", "B"]


def test_notes_say_whose_they_are() -> None:
    found = diff()
    noted = found._replace(
        a=found.a._replace(head=found.a.head._replace(notes=("n",))),
        b=found.b._replace(head=found.b.head._replace(notes=("m", "o"))),
    )
    assert [*map(str, notes_of(noted))] == ["A: n", "B: m", "B: o"]
    first = diff_page(found)
    assert (
        str(first.title) == f"A  a: {found.a.head.title}" and str(first.lead[1].text) == f"B  b: {found.b.head.title}"
    )
    assert len(first.lead) == 3


def test_what_is_the_same_on_both() -> None:
    """Of two engines the numbers alone; where nothing changes that is said first."""
    found = diff(SLOTS)._replace(equal_numbers=1, equal_flags=12)
    assert lines(diff_page(found).sections[-1]) == [("the same on both: 1 number, 12 resolved flags", "muted")]
    two = found._replace(same_engine=False, equal_flags=None)
    assert lines(diff_page(two).sections[-1])[0][0] == "the same on both: 1 number"
    assert len(diff_page(found).sections) == 2 and len(diff_page(two).lead) == 4
    same = diff_page(found._replace(changes=())).sections
    assert len(same) == 2 and lines(same[0]) == [("nothing that touches memory changes", "")]


def test_whose_numbers_are_estimated_is_said() -> None:
    def said(a: Certainty, b: Certainty) -> list[str]:
        found = diff()
        page = diff_page(found._replace(a=found.a._replace(certainty=a), b=found.b._replace(certainty=b)))
        return [str(line.text) for line in page.sections[-1].blocks[1:] if isinstance(line, Line)]

    assert said("derived", "derived") == []
    assert said("derived", "estimated") == ["sizes, requests and free memory of B are estimated"]
    assert "of A, B are" in said("estimated", "estimated")[0] and said("upper bound", "derived") == []
