"""A page as plain text, for the tests of what stands on it: sections in their order, tables as rows of words."""

from collections.abc import Iterator

from glm_kvplan.show.cells import cell_of, cell_text
from glm_kvplan.show.page import Block, Cell, Figure, Line, Page, Section, Table
from glm_kvplan.show.said import ENGLISH


def laid_out(sections: tuple[Section, ...]) -> list[tuple[str, bool, int]]:
    """(title, quiet, the place at which one screen leaves it out: 1 is the first, 0 never)."""
    return [(str(section.title), section.quiet, section.spare) for section in sections]


def section(page: Page, title: str) -> Section:
    (found,) = (one for one in page.sections if str(one.title) == title)
    return found


def tables(blocks: tuple[Block, ...]) -> Iterator[Table]:
    for block in blocks:
        if isinstance(block, Table):
            yield block
        elif isinstance(block, Figure) and block.numbers is not None:
            yield block.numbers


def table(page: Page, title: str) -> Table:
    """The only table of a section."""
    (found,) = tables(section(page, title).blocks)
    return found


def lines(blocks: tuple[Block, ...]) -> list[tuple[str, str]]:
    """(text, tone) of each paragraph."""
    return [(str(block.text), block.tone) for block in blocks if isinstance(block, Line)]


def titles(found: Table) -> list[str]:
    return [str(column.title) for column in found.columns]


def spare(found: Table) -> list[str]:
    """The columns that a narrow terminal leaves out, the first first; numbered from 1 without a gap."""
    order = sorted((column.spare, str(column.title)) for column in found.columns if column.spare)
    assert [number for number, _ in order] == list(range(1, len(order) + 1))
    return [title for _, title in order]


def rows(found: Table) -> list[list[str]]:
    """Every cell as it is written."""
    return [[cell_text(cell, column, ENGLISH) for cell, column in zip(row.cells, found.columns, strict=True)]
            for row in found.rows]  # fmt: skip


def tones(found: Table) -> list[str]:
    """The tone of each row."""
    return [row.tone for row in found.rows]


def cells(found: Table, column: str) -> list[Cell]:
    place = titles(found).index(column)
    return [cell_of(row.cells[place]) for row in found.rows]
