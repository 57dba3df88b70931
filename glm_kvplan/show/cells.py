"""How the value of a table's cell is written, by its kind.

| kind | written |
| --- | --- |
| count, change | `1,048,576`; with its sign |
| bytes, byte_change | whole bytes, `147,619,840`; with their sign |
| decimal, binary | bytes in a unit that fits: `60.9 GB`; `1.42 MiB` |
| binary_change | the same with its sign: `+1.42 MiB` |
| gib, gb | bytes in one unit with two decimals: `1.79 GiB`; `1.79 GB` |
| gib_change | a change in GiB, without the unit |
| share | `45%`; a terminal adds a bar |
| text, code, fixed | as it stands; a terminal never folds what is fixed |
| note | as it stands; a terminal puts it on a line of its own, under its row |

An estimate has a `~` and three digits, of bytes one decimal of GiB; an upper bound has `at most` before it. A text in
a column of numbers stays a text.
"""

from glm_kvplan.show.format import binary, decimal, free_change, gib, three_digits, whole
from glm_kvplan.show.page import Cell, Column, Value
from glm_kvplan.show.said import Said, Words, say
from glm_kvplan.units import GB, GIB

NUMBERS = frozenset(
    ("count", "change", "bytes", "byte_change", "decimal", "binary", "binary_change", "gib", "gb", "gib_change")
)


def cell_of(cell: Cell | Value) -> Cell:
    return cell if isinstance(cell, Cell) else Cell(cell)


def numeric(column: Column) -> bool:
    """Whether the column is set flush right."""
    return column.kind in NUMBERS


def cell_text(cell: Cell | Value, column: Column, words: Words) -> str:
    """What stands in the cell."""
    cell = cell_of(cell)
    value = cell.value
    if value is None:
        return ""
    if isinstance(value, str | Said):
        return words(value)
    number = _number(value, cell.kind or column.kind, cell.estimated)
    return words(say("at most {value}", value=number)) if cell.at_most else number


def _number(value: int | float, kind: str, estimated: bool) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if kind == "share":
        return f"{value:.0%}"
    if kind == "gib_change":
        return free_change(int(value))
    if kind == "gb":
        return f"{value / GB:,.2f} GB"
    if kind == "gib":
        return f"~{gib(int(value))}" if estimated else f"{value / GIB:.2f} GiB"
    if kind in ("decimal", "binary", "binary_change"):
        if estimated:
            return f"~{gib(int(value))}"
        scaled = decimal(int(value)) if kind == "decimal" else binary(int(value))
        return f"+{scaled}" if kind == "binary_change" and value > 0 else scaled
    if isinstance(value, float):
        return f"{value:g}"
    if kind in ("change", "byte_change"):
        if not value:
            return "0"
        return ("+" if value > 0 else "-") + (three_digits(abs(value)) if estimated else whole(abs(value)))
    return f"~{three_digits(value)}" if estimated else whole(value)
