"""A page as Markdown, for a pull request: the verdict and the tables; charts become their alternative text."""

import re

from glm_kvplan.show.printable import markdown as plain
from glm_kvplan.show.report_page import Page, Section, Table

_MARKS = {"yes": "✅", "tight": "⚠️", "no": "❌"}


def markdown(page: Page) -> str:
    """GitHub-flavoured Markdown. What comes from outside is escaped: it can neither format nor embed anything."""
    lines = [f"## {plain(page.title)}", "", plain(page.subtitle), "", plain(page.wanted), ""]
    lines += [f"{_MARKS[page.mood]} **{plain(page.verdict)}**", ""]
    lines += [f"- {plain(remark)}" for remark in page.remarks]
    for section in page.sections:
        lines += ["", *_section(section)]
    lines += ["", "---", "", *(f"<sub>{plain(line)}</sub><br>" for line in page.footer)]
    return "\n".join(lines) + "\n"


def _section(section: Section) -> list[str]:
    lines = [f"### {plain(section.title)}", ""]
    lines += [f"{plain(sentence)}\n" for sentence in section.sentences]
    if section.folded and section.tables:
        lines += [f"<details><summary>{plain(section.summary)}</summary>", ""]
    for table in section.tables:
        lines += _table(table)
    if section.folded and section.tables:
        lines += ["</details>", ""]
    for introduction, code in section.code:
        fence = "`" * max(3, 1 + max(map(len, re.findall("`+", code)), default=0))
        lines += [plain(introduction), "", f"{fence}sh", code, fence, ""]
    return lines


def _table(table: Table) -> list[str]:
    lines = [f"**{plain(table.title)}**", ""] if table.title else []
    lines.append(_row(table.header))
    lines.append(_row(["---:" if place in table.numeric else "---" for place in range(len(table.header))]))
    lines += [_row([plain(cell.text) for cell in row]) for row in table.rows]
    return [*lines, ""]


def _row(cells: list[str] | tuple[str, ...]) -> str:
    return "| " + " | ".join(cells) + " |"
