"""Foreign text in every kind of output: it moves no cursor, starts no command, formats nothing, runs nowhere."""

import csv
import io
import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glm_kvplan.show import printable
from glm_kvplan.show.chart import Bar, Stack
from glm_kvplan.show.html import html
from glm_kvplan.show.markdown import markdown
from glm_kvplan.show.page import Code, Column, Figure, Line, Page, Row, Section, Table, Verdict
from glm_kvplan.show.terminal import Screen
from glm_kvplan.show.text import page_lines

# The inputs that broke the tool, and what stands for their kinds.
HOSTILE = "\x1b]0;pwned\x1b\\\n::error::pwn \x1b[31mRED \u202eevil\u2028x\x9b31m ##[error]v1 \ud800"


def page(text: str) -> Page:
    """A page with the text in every place there is."""
    table = Table((Column(text), Column(text)), (Row((text, text)), Row((text,))), text)
    bars = Stack("map", text, (Bar(text, 1 << 30, "index"),), 1 << 30)
    blocks = (Line(text), table, Figure(bars), Code(text, text))
    verdict = Verdict(text, "bad", (text,))
    return Page(text, (Line(text),), (Section(blocks, text),), (text,), (text,), (text,), verdict=verdict)


def on_a_terminal(text: str, width: int = 80, *, coloured: bool = False) -> str:
    out = io.StringIO()
    shown = Screen(out, width, coloured)
    shown.write(page_lines(page(text), shown))
    return out.getvalue()


@pytest.mark.parametrize("width", [20, 40, 80, 200])
def test_a_terminal_is_not_steered(width: int) -> None:
    shown = on_a_terminal(HOSTILE, width)
    assert re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u202e]", shown) is None
    assert not [line for line in shown.splitlines() if line.lstrip().startswith("::")]
    assert "##[" not in shown
    assert "\\x1b" in shown and "\\u202e" in shown


def test_colours_are_ours_alone() -> None:
    shown = on_a_terminal(HOSTILE, coloured=True)
    assert set(re.findall("\x1b[^m]*m", shown)) <= {f"\x1b[{style}m" for style in ("0", "1", "1;31", "2", "33", "36")}


@given(st.text())
def test_any_text_stays_within_its_lines(text: str) -> None:
    shown = on_a_terminal(text, 40)
    assert re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f]", shown) is None
    assert not [line for line in shown.split("\n") if line.lstrip().startswith("::")]


def test_markdown_formats_nothing() -> None:
    text = markdown(page("a\n\n# b\n::x <img src=x> [l](http://e) | @me `c` ``` \x1b[1m"))
    outside = re.sub(r"(?ms)^(`{3,})sh\n.*?\n\1$", "", text)
    assert not re.search(r"(?m)(?<!\\)<img|^# ", outside)
    assert "http://" not in outside and "@me" not in outside and "\x1b" not in text


class Tags(HTMLParser):
    """The elements a browser finds."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found |= {tag, *(name for name, _ in attrs)}


@given(st.text())
def test_a_browser_runs_and_hides_nothing(text: str) -> None:
    shown = html(page(f'"><script>{text}<img src=x onerror=y>'))
    assert not Tags(shown).found & {"script", "img", "onerror"}
    body = shown.partition("</style>")[2]
    assert re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]", body) is None


def test_spreadsheets_run_no_cell() -> None:
    out = io.StringIO()
    words = ["=1+1", "+1", "-1", "@x", "\t=1", "\r=1", "safe", "1-2"]
    csv.writer(out).writerow([printable.cell(word) for word in words])
    read = next(csv.reader(io.StringIO(out.getvalue(), newline="")))
    assert [cell for cell in read if cell.startswith(("=", "+", "-", "@", "\t", "\r"))] == []
    assert read[-2:] == ["safe", "1-2"]


def test_github_commands_end_where_they_should() -> None:
    assert "\n" not in printable.github(HOSTILE) and "\x1b" not in printable.github(HOSTILE)
    assert printable.github_property("a:b,c%\n") == "a%3Ab%2Cc%25%0A"


def test_sarif_links_nowhere() -> None:
    assert printable.sarif("see [x](https://e) \x1b") == "see \\[x\\](https://e) \\\\x1b"
