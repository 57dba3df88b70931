"""An answer as a page: sections of lines, tables, charts and code. Every form is printed from it; nothing is computed.

Texts are data or sentences (`said.Text`); the renderers make both printable, callers never escape anything.
Tones: "" (plain), "strong", "muted", "good", "careful", "bad".
"""

from typing import NamedTuple

from glm_kvplan.show.said import Text

Value = Text | int | float | None


class Line(NamedTuple):
    """A paragraph."""

    text: Text
    tone: str = ""


class Column(NamedTuple):
    """A column of a table. `kind` says what its values are and how they are written (see cells.py).

    Where a terminal is too narrow, columns with a `spare` number are left out, the lowest first.
    """

    title: Text = ""
    kind: str = "text"
    spare: int = 0


class Cell(NamedTuple):
    """A value with more to say of it: its tone, that it is an estimate or an upper bound, or a kind of its own."""

    value: Value
    tone: str = ""
    estimated: bool = False
    kind: str = ""
    at_most: bool = False


class Row(NamedTuple):
    """Cells of a table, as many as it has columns; a single one is a heading over the rows below it."""

    cells: tuple[Cell | Value, ...]
    tone: str = ""


class Table(NamedTuple):
    """Rows under their columns. `head` False: the columns' titles say nothing new, a terminal leaves them out.

    `folded` is the line under which a page shows it on demand ("": it is always shown).
    """

    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    title: Text = ""
    head: bool = True
    folded: Text = ""


class Bar(NamedTuple):
    """One bar of a chart. `look` names its colour and pattern: loaded, charged, uncharged, free, alarm, tokens, ..."""

    name: Text
    value: int | float
    look: str
    estimated: bool = False
    mark: str = ""  # behind its name; the chart's `marks` say what it means


class Stack(NamedTuple):
    """Bars of bytes that add up to `total`, each starting where the last one ended; the last may be negative.

    `alt` says in a sentence what it shows, `looks` what each look means, `marks` what each mark of a bar means.
    """

    name: str
    title: Text
    bars: tuple[Bar, ...]
    total: int
    alt: Text = ""
    looks: tuple[tuple[str, Text], ...] = ()
    marks: tuple[tuple[str, Text], ...] = ()


class Code(NamedTuple):
    """Text to copy into a shell, line by line."""

    text: str
    introduction: Text = ""


Block = Line | Table | Stack | Code


class Section(NamedTuple):
    """Blocks that belong together. `quiet`: they speak for themselves, a terminal shows no title."""

    name: str
    blocks: tuple[Block, ...]
    title: Text = ""
    quiet: bool = False
    tone: str = "strong"  # of its title


class Page(NamedTuple):
    """A whole answer. `warnings` are shown in every form; `notes` say how the input was read.

    `lead` are the lines under the title; a terminal leaves the title of a `quiet` page out.
    """

    title: Text
    lead: tuple[Line, ...]
    sections: tuple[Section, ...]
    warnings: tuple[Text, ...] = ()
    notes: tuple[Text, ...] = ()
    footer: tuple[Text, ...] = ()
    quiet: bool = False


def heading(text: Text) -> Row:
    """A row that names the rows below it."""
    return Row((text,), "strong")


def rows(*found: tuple[Cell | Value, ...]) -> tuple[Row, ...]:
    """Plain rows."""
    return tuple(Row(cells) for cells in found)
