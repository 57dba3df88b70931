"""A page as HTML: built as a tree, so that every text that comes from outside is escaped by construction.

No script, no request: the page's own policy forbids both.
"""

import re
from collections.abc import Mapping, Sequence
from importlib.resources import files
from xml.etree.ElementTree import Element, SubElement, tostring

from glm_kvplan.show.cells import cell_of, cell_text, numeric
from glm_kvplan.show.chart import Stack
from glm_kvplan.show.markdown import bars_table
from glm_kvplan.show.page import Block, Cell, Code, Column, Figure, Line, Page, Row, Section, Table, Verdict
from glm_kvplan.show.printable import xml
from glm_kvplan.show.said import ENGLISH, Text, Words, say

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_MARKS = {"good": "✓", "careful": "!", "bad": "✗"}
_SENTENCE = 50  # letters
_LANGUAGE = {"en": "en", "zh": "zh-Hans"}

Drawn = Mapping[str, Sequence[Element]]  # the drawings of each chart by name, for wide and for narrow windows


def html(page: Page, words: Words = ENGLISH, drawn: Drawn | None = None) -> str:
    """The page; a chart that is not among the drawn ones leaves its numbers."""
    writer = _Writer(words, drawn or {})
    root = Element("html", lang=_LANGUAGE[words.language])
    head = SubElement(root, "head")
    SubElement(head, "meta", charset="utf-8")
    SubElement(head, "meta", {"http-equiv": "Content-Security-Policy", "content": _POLICY})
    SubElement(head, "meta", name="viewport", content="width=device-width, initial-scale=1")
    writer.text(head, "title", page.title)
    SubElement(head, "style").text = (files(__package__) / "page.css").read_text(encoding="utf-8")
    writer.body(SubElement(root, "body"), page)
    return "<!doctype html>\n" + tostring(root, encoding="unicode", method="html") + "\n"


def _is_long(table: Table) -> bool:
    """On a phone its rows are cards: it has many columns, or sentences in narrow ones."""
    texts = (str(cell_of(cell).value) for row in table.rows for cell in row.cells)
    return len(table.columns) > 4 or (len(table.columns) > 3 and any(len(text) > _SENTENCE for text in texts))


class _Writer:
    """Adds the parts of one page to its tree."""

    def __init__(self, words: Words, drawn: Drawn) -> None:
        self.words, self.drawn = words, drawn

    def body(self, body: Element, page: Page) -> None:
        header = SubElement(body, "header")
        self.text(header, "h1", page.title)
        for line in page.lead:
            self.text(header, "p", line.text, line.tone)
        if page.verdict is not None:
            self.verdict(header, page.verdict)
        for warning in page.warnings:
            self.marked(SubElement(header, "p", {"class": "warning"}), "!", warning)
        main = SubElement(body, "main")
        for section in page.sections:
            self.section(main, section)
        if page.notes:
            notes = tuple(Line(note) for note in page.notes)
            self.section(main, Section(notes, say("Notes")))
        footer = SubElement(body, "footer")
        for text in page.footer:
            self.text(footer, "p", text)

    def verdict(self, parent: Element, verdict: Verdict) -> None:
        box = SubElement(parent, "div", {"class": f"verdict {verdict.tone}", "role": "status"})
        self.marked(SubElement(box, "p"), _MARKS[verdict.tone], verdict.text)
        for remark in verdict.remarks:
            self.text(box, "p", remark)

    def marked(self, parent: Element, mark: str, text: Text) -> None:
        """A mark for the eye alone, and a text."""
        span = SubElement(parent, "span", {"class": "mark", "aria-hidden": "true"})
        span.text, span.tail = mark, xml(self.words(text))

    def section(self, parent: Element, section: Section) -> None:
        box = SubElement(parent, "section")
        if section.title:
            self.text(box, "h2", section.title)
        for block in section.blocks:
            self.block(box, block, section.title)

    def block(self, parent: Element, block: Block, title: Text) -> None:
        if isinstance(block, Line):
            self.text(parent, "p", block.text, block.tone)
        elif isinstance(block, Table):
            self.table(parent, block, title)
        elif isinstance(block, Code):
            if block.introduction:
                self.text(parent, "p", block.introduction)
            self.text(SubElement(parent, "pre", tabindex="0"), "code", block.text)
        else:
            self.figure(parent, block, title)

    def figure(self, parent: Element, block: Figure, title: Text) -> None:
        chart, numbers = block.chart, block.numbers
        if numbers is None and isinstance(chart, Stack):
            numbers = bars_table(chart)
        if drawings := self.drawn.get(chart.name):
            SubElement(parent, "figure", id=f"chart-{chart.name}").extend(drawings)
        elif numbers is not None:
            numbers = numbers._replace(folded="")
        if numbers is not None:
            self.table(parent, numbers, title)

    def table(self, parent: Element, table: Table, title: Text) -> None:
        if not table.rows:
            return
        if table.title:
            self.text(parent, "h3", table.title)
        if table.folded:
            parent = SubElement(parent, "details")
            self.text(parent, "summary", table.folded)
        label = xml(self.words(table.title or table.folded or title))
        box = SubElement(parent, "div", {"class": "scroll", "tabindex": "0", "role": "region", "aria-label": label})
        made = SubElement(box, "table", {"class": "long"} if _is_long(table) else {})
        if table.head:
            row = SubElement(SubElement(made, "thead"), "tr")
            for column in table.columns:
                self.text(row, "th", column.title, "number" if numeric(column) else "", scope="col")
        body = SubElement(made, "tbody")
        for found in table.rows:
            self.row(SubElement(body, "tr"), found, table.columns)

    def row(self, parent: Element, row: Row, columns: tuple[Column, ...]) -> None:
        if len(row.cells) == 1 and len(columns) > 1:
            self.cell(parent, cell_of(row.cells[0]), columns[0], row.tone, colspan=str(len(columns)))
            return
        for cell, column in zip(row.cells, columns, strict=True):
            self.cell(parent, cell_of(cell), column, row.tone)

    def cell(self, parent: Element, cell: Cell, column: Column, tone: str, **attributes: str) -> None:
        value = cell.value
        if isinstance(value, int | float) and not isinstance(value, bool):
            attributes["data-value"] = repr(value)
        if column.title:
            attributes["data-label"] = xml(self.words(column.title))
        style = " ".join(filter(None, ("number" if numeric(column) else "", cell.tone or tone)))
        self.text(parent, "td", cell_text(cell, column, self.words), style, **attributes)

    def text(self, parent: Element, tag: str, text: Text, style: str = "", **attributes: str) -> None:
        """A child with text, which the serializer escapes; a name in a table may be folded behind its underscores."""
        element = SubElement(parent, tag, attributes)
        shown = xml(self.words(text))
        element.text, *others = re.split("(?<=_)", shown) if tag in ("td", "th") else (shown,)
        for part in others:
            SubElement(element, "wbr").tail = part
        if style:
            element.set("class", style)
