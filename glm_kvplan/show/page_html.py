"""A page as HTML: built as a tree, so that every text that comes from outside is escaped by construction.

No script, no request: the page's own policy forbids both.
"""

from collections.abc import Mapping
from importlib.resources import files
from xml.etree.ElementTree import Element, SubElement, tostring

from glm_kvplan.show.report_page import Page, Section, Table

_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_MARKS = {"yes": "✓", "tight": "!", "no": "✗"}
_LANGUAGE = {"en": "en", "zh": "zh-Hans"}


def html(page: Page, charts: Mapping[str, tuple[Element, ...]]) -> str:
    """The page; `charts` holds the drawings of each of its charts by name, for wide and for narrow windows."""
    root = Element("html", lang=_LANGUAGE[page.language])
    head = SubElement(root, "head")
    SubElement(head, "meta", charset="utf-8")
    SubElement(head, "meta", {"http-equiv": "Content-Security-Policy", "content": _POLICY})
    SubElement(head, "meta", name="viewport", content="width=device-width, initial-scale=1")
    _text(head, "title", page.title)
    _text(head, "style", (files(__package__) / "page.css").read_text(encoding="utf-8"))
    body = SubElement(root, "body")
    header = SubElement(body, "header")
    _text(header, "h1", page.title)
    _text(header, "p", page.subtitle, "muted")
    _text(header, "p", page.wanted)
    _verdict(header, page)
    main = SubElement(body, "main")
    for section in page.sections:
        _section(main, section, charts)
    footer = SubElement(body, "footer")
    for line in page.footer:
        _text(footer, "p", line)
    return "<!doctype html>\n" + tostring(root, encoding="unicode", method="html") + "\n"


def _verdict(parent: Element, page: Page) -> None:
    box = SubElement(parent, "div", {"class": f"verdict {page.mood}", "role": "status"})
    first = SubElement(box, "p")
    mark = SubElement(first, "span", {"class": "mark", "aria-hidden": "true"})
    mark.text, mark.tail = _MARKS[page.mood], page.verdict
    for remark in page.remarks:
        _text(box, "p", remark)


def _section(parent: Element, section: Section, charts: Mapping[str, tuple[Element, ...]]) -> None:
    box = SubElement(parent, "section", id=section.key)
    _text(box, "h2", section.title)
    for sentence in section.sentences:
        _text(box, "p", sentence)
    if section.chart is not None:
        figure = SubElement(box, "figure", id=f"chart-{section.chart.name}")
        figure.extend(charts[section.chart.name])
    target = box
    if section.folded and section.tables:
        target = SubElement(box, "details")
        _text(target, "summary", section.summary)
    for table in section.tables:
        _table(target, table, section)
    for introduction, code in section.code:
        _text(box, "p", introduction)
        _text(SubElement(box, "pre", tabindex="0"), "code", code)


def _table(parent: Element, table: Table, section: Section) -> None:
    if table.title:
        _text(parent, "h3", table.title)
    label = table.title or section.title
    box = SubElement(parent, "div", {"class": "scroll", "tabindex": "0", "role": "region", "aria-label": label})
    made = SubElement(box, "table", {"class": "long"} if len(table.header) > 4 else {})
    row = SubElement(SubElement(made, "thead"), "tr")
    for place, name in enumerate(table.header):
        _text(row, "th", name, "number" if place in table.numeric else "", scope="col")
    body = SubElement(made, "tbody")
    for cells in table.rows:
        row = SubElement(body, "tr")
        for place, cell in enumerate(cells):
            value = {} if cell.value is None else {"data-value": repr(cell.value)}
            _text(row, "td", cell.text, "number" if place in table.numeric else "", **value)


def _text(parent: Element, tag: str, text: str, style: str = "", **attributes: str) -> Element:
    """A child with text, which the serializer escapes."""
    element = SubElement(parent, tag, attributes)
    element.text = text
    if style:
        element.set("class", style)
    return element
