"""A page as Markdown, for a pull request: the verdict and the tables; charts become their alternative text."""

import re

from glm_kvplan.report.page import Page, Section, Table

_SPECIAL = re.compile(r"([\\`*{}\[\]<>#|~]|(?<!\w)_|_(?!\w))")
_MARKS = {"yes": "✅", "tight": "⚠️", "no": "❌"}


def markdown(page: Page) -> str:
    """GitHub-flavoured Markdown. What comes from outside is escaped: it can neither format nor embed anything."""
    lines = [f"## {_plain(page.title)}", "", _plain(page.subtitle), "", _plain(page.wanted), ""]
    lines += [f"{_MARKS[page.mood]} **{_plain(page.verdict)}**", ""]
    lines += [f"- {_plain(remark)}" for remark in page.remarks]
    for section in page.sections:
        lines += ["", *_section(section)]
    lines += ["", "---", "", *(f"<sub>{_plain(line)}</sub><br>" for line in page.footer)]
    return "\n".join(lines) + "\n"


def _section(section: Section) -> list[str]:
    lines = [f"### {_plain(section.title)}", ""]
    lines += [f"{_plain(sentence)}\n" for sentence in section.sentences]
    if section.folded and section.tables:
        lines += [f"<details><summary>{_plain(section.summary)}</summary>", ""]
    for table in section.tables:
        lines += _table(table)
    if section.folded and section.tables:
        lines += ["</details>", ""]
    for introduction, code in section.code:
        fence = "`" * max(3, 1 + max(map(len, re.findall("`+", code)), default=0))
        lines += [_plain(introduction), "", f"{fence}sh", code, fence, ""]
    return lines


def _table(table: Table) -> list[str]:
    lines = [f"**{_plain(table.title)}**", ""] if table.title else []
    lines.append(_row(table.header))
    lines.append(_row(["---:" if place in table.numeric else "---" for place in range(len(table.header))]))
    lines += [_row([_plain(cell.text) for cell in row]) for row in table.rows]
    return [*lines, ""]


def _row(cells: list[str] | tuple[str, ...]) -> str:
    return "| " + " | ".join(cells) + " |"


def _plain(text: str) -> str:
    """Text that Markdown shows as it stands, on one line; an @ addresses nobody, a # links nothing."""
    text = _SPECIAL.sub(r"\\\1", " ".join(text.split()))
    return text.replace("@", "@\u200b").replace("&", "&amp;").replace("://", "&#58;//")
