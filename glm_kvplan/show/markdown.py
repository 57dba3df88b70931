"""A page as GitHub-flavoured Markdown, for a pull request: its verdict and tables, and charts as their numbers."""

import re

from glm_kvplan.show.cells import cell_of, cell_text, numeric
from glm_kvplan.show.chart import Stack
from glm_kvplan.show.page import Block, Code, Column, Figure, Line, Page, Row, Section, Table
from glm_kvplan.show.printable import markdown as plain
from glm_kvplan.show.printable import markdown_code as code
from glm_kvplan.show.printable import markdown_lines
from glm_kvplan.show.said import ENGLISH, Words, say
from glm_kvplan.show.text_bars import bar_size, legend

_MARKS = {"good": "✅", "careful": "⚠️", "bad": "❌"}


def markdown(page: Page, words: Words = ENGLISH) -> str:
    """The text. What comes from outside can neither format nor embed anything."""
    lines = [f"## {plain(words(page.title))}", ""]
    for line in page.lead:
        lines += _line(line, words)
    if page.verdict is not None:
        lines += [f"{_MARKS[page.verdict.tone]} **{plain(words(page.verdict.text))}**", ""]
        lines += [f"- {plain(words(remark))}" for remark in page.verdict.remarks]
    lines += [f"- ⚠️ {plain(words(warning))}" for warning in page.warnings]
    for section in page.sections:
        lines += _section(section, words)
    if page.notes:
        lines += ["", f"### {words(say('Notes'))}", ""]
        lines += [f"- {plain(words(note))}" for note in page.notes]
    if page.footer:
        lines += ["", "---", "", *(f"<sub>{plain(words(line))}</sub><br>" for line in page.footer)]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).rstrip("\n") + "\n"


def _section(section: Section, words: Words) -> list[str]:
    lines = ["", f"### {plain(words(section.title))}", ""] if section.title else [""]
    for block in section.blocks:
        lines += _block(block, words)
    return lines


def _block(block: Block, words: Words) -> list[str]:
    if isinstance(block, Line):
        return _line(block, words)
    if isinstance(block, Table):
        return _table(block, words)
    if isinstance(block, Figure):
        return _figure(block, words)
    return _code(block, words)


def _figure(figure: Figure, words: Words) -> list[str]:
    chart = figure.chart
    if figure.numbers is not None:
        return _table(figure.numbers, words)
    return [*_table(bars_table(chart), words), plain(legend(chart, words)), ""] if isinstance(chart, Stack) else []


def _line(line: Line, words: Words) -> list[str]:
    text = plain(words(line.text))
    if not text:
        return []
    return [f"**{text}**" if line.tone in ("strong", "bad") else text, ""]


def _table(table: Table, words: Words) -> list[str]:
    if not table.rows:
        return []
    lines = [f"**{plain(words(table.title))}**", ""] if table.title else []
    if table.folded:
        lines += [f"<details><summary>{plain(words(table.folded))}</summary>", ""]
    lines.append(_row([plain(words(column.title)) if table.head else "" for column in table.columns]))
    lines.append(_row(["---:" if numeric(column) else "---" for column in table.columns]))
    lines += [_row(_cells(row, table.columns, words)) for row in table.rows]
    lines.append("")
    return [*lines, "</details>", ""] if table.folded else lines


def _cells(row: Row, columns: tuple[Column, ...], words: Words) -> list[str]:
    found = []
    for cell, column in zip(row.cells, columns, strict=False):
        text = cell_text(cell, column, words)
        text = code(text) if column.kind == "code" and not row.tone else plain(text)
        strong = (cell_of(cell).tone or row.tone) in ("strong", "bad")
        found.append(f"**{text}**" if strong and text else text)
    return found + [""] * (len(columns) - len(found))


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _code(code: Code, words: Words) -> list[str]:
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", code.text)), default=0))
    return [*_line(Line(code.introduction), words), f"{fence}sh", markdown_lines(code.text), fence, ""]


def bars_table(stack: Stack) -> Table:
    """The numbers of a stack of bars."""
    columns = (Column(say("part")), Column(say("size")), Column(say("bytes"), "bytes"))
    rows = tuple(
        Row((say("{name}{mark}", name=bar.name, mark=bar.mark), bar_size(bar), None if bar.estimated else bar.value))
        for bar in stack.bars
    )
    total = Row((say("total"), None, stack.total), "strong")
    return Table(columns, (*rows, total))
