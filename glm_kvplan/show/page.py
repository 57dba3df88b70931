"""An answer as a page: sections of lines, tables, charts and code. Every form is printed from it; nothing is computed.

Texts are data or sentences (`said.Text`); the renderers make both printable, callers never escape anything.
"""

from typing import Literal, NamedTuple

from glm_kvplan.show.chart import Chart
from glm_kvplan.show.said import Text

Value = Text | int | float | None
Tone = Literal["", "strong", "muted", "good", "careful", "bad"]  # "": plain
Kind = Literal[
    "text", "code", "fixed", "note", "share", "count", "change", "bytes", "byte_change", "decimal", "binary",
    "binary_change", "gib", "gb", "gib_change",
]  # fmt: skip  # as cells.py writes them


class Line(NamedTuple):
    """A paragraph."""

    text: Text
    tone: Tone = ""


class Column(NamedTuple):
    """A column of a table. `kind` says what its values are and how they are written (see cells.py).

    Where a table is too wide for a terminal of 60 cells or more, columns with a `spare` number are left out, the lowest
    first; below that its rows become lines, and none is.
    """

    title: Text = ""
    kind: Kind = "text"
    spare: int = 0


class Cell(NamedTuple):
    """A value with more to say of it: its tone, that it is an estimate or an upper bound, or a kind of its own."""

    value: Value
    tone: Tone = ""
    estimated: bool = False
    kind: Kind | Literal[""] = ""
    at_most: bool = False


class Row(NamedTuple):
    """Cells of a table, as many as it has columns; a single one is a heading over the rows below it."""

    cells: tuple[Cell | Value, ...]
    tone: Tone = ""


class Table(NamedTuple):
    """Rows under their columns. `head` False: the columns' titles say nothing new, a terminal leaves them out.

    `folded` is the line under which a page shows it on demand ("": it is always shown).
    """

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    title: Text = ""
    head: bool = True
    folded: Text = ""


class Figure(NamedTuple):
    """A chart, and the same numbers as a table: under it, or in its place where nothing can be drawn."""

    chart: Chart
    numbers: Table | None = None


class Code(NamedTuple):
    """Text to copy into a shell, line by line."""

    text: str
    introduction: Text = ""


Block = Line | Table | Figure | Code


class Section(NamedTuple):
    """Blocks that belong together. `quiet`: they speak for themselves, a terminal shows no title.

    Where one screen is to hold the page, sections with a `spare` number are left out, the lowest first, and named.
    """

    blocks: tuple[Block, ...]
    title: Text = ""
    quiet: bool = False
    tone: Tone = "strong"  # of its title
    spare: int = 0


class Verdict(NamedTuple):
    """The answer in a sentence, its tone ("good", "careful" or "bad"), and the remarks that belong to it."""

    text: Text
    tone: Tone
    remarks: tuple[Text, ...] = ()


class Page(NamedTuple):
    """A whole answer. `warnings` are shown in every form; `notes` say how the input was read.

    `lead` are the lines under the title, the first of them says what the page is about; a terminal leaves the title
    of a `quiet` page out. `missing` names charts that a page of its kind may have and this one lacks, and why.
    """

    title: Text
    lead: tuple[Line, ...]
    sections: tuple[Section, ...]
    warnings: tuple[Text, ...] = ()
    notes: tuple[Text, ...] = ()
    footer: tuple[Text, ...] = ()
    quiet: bool = False
    verdict: Verdict | None = None
    missing: tuple[tuple[str, Text], ...] = ()

    @property
    def charts(self) -> tuple[Chart, ...]:
        return tuple(block.chart for section in self.sections for block in section.blocks if isinstance(block, Figure))


def heading(text: Text) -> Row:
    """A row that names the rows below it."""
    return Row((text,), "strong")


def rows(*found: tuple[Cell | Value, ...]) -> tuple[Row, ...]:
    """Plain rows."""
    return tuple(Row(cells) for cells in found)
