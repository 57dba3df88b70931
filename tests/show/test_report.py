"""What a report says and how it is printed: pages, Markdown, single charts, words, and hostile text."""

import re
import string
import tomllib
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glm_kvplan.answers.pictures.picture import Picture, picture
from glm_kvplan.contexts import parse_contexts
from glm_kvplan.engines.planner import plan
from glm_kvplan.engines.sglang.components import COMPONENTS
from glm_kvplan.engines.sglang.components.component import APART
from glm_kvplan.engines.sglang.sizing import memory_map
from glm_kvplan.engines.sglang.sizing.served_requests import Demand
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.show import charts
from glm_kvplan.show.page_md import markdown
from glm_kvplan.show.report_page import page
from glm_kvplan.show.words import LANGUAGES, load_words
from glm_kvplan.show.write import Wanted, render

DIRECTORY = Path(charts.__file__).parent
HOST = {"tp_size": 8, "dp_size": 8, "enable_dp_attention": True, "enable_hierarchical_cache": True}
EVIL = '</title><script>alert(1)</script><img src="http://evil.invalid/x" onerror=alert(2)>&"\'|`$x$`|@someone#1'
VOID = {"meta", "br"}


@cache
def seen(kind: str = "mtp", context: str = "0.8:8k,0.2:128k", concurrency: int = 64) -> Picture:
    flags: dict[str, Any] = {"mtp": {"tp_size": 4, "speculative_algorithm": "NEXTN"}, "host": HOST}.get(kind, {})
    if kind == "refused":
        flags = {"tp_size": 4, "max_mamba_cache_size": 9000}
    gpu = "h200" if kind == "host" else "b200"
    memory = MemoryGiven(176.25, 130.0) if kind == "refused" else MemoryGiven()
    return picture(plan(flags or {"tp_size": 8}, gpu=gpu), Demand(parse_contexts(context), concurrency), memory)


@cache
def made(format: str, kind: str = "mtp", language: str = "en", chart: str = "map") -> bytes:
    return render(seen(kind), Wanted(None, format, chart, language))


class Reader(HTMLParser):
    """Reads a page strictly: every element closed in order, ids unique; keeps tags, ids, references and texts."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: set[str] = set()
        self.ids: list[str] = []
        self.references: set[str] = set()
        self.attributes: list[tuple[str, str | None]] = []
        self.texts: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes += attrs
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            self.references |= set(re.findall(r"url\(#([^)]+)\)", value or ""))
            if name == "href":
                self.references.add((value or "")[1:])
            if name == "aria-labelledby":
                self.references |= set((value or "").split())
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


# --- the page --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "language"), [("mtp", "en"), ("host", "zh"), ("refused", "en"), ("refused", "zh")])
def test_the_page_is_whole_and_alone(kind: str, language: str) -> None:
    text = made("html", kind, language).decode()
    reader = Reader(text)
    assert len(text) < 1_000_000
    assert len(reader.ids) == len(set(reader.ids))
    assert reader.references <= set(reader.ids)
    assert not reader.tags & {"script", "link", "iframe", "object", "embed", "form", "base", "img"}
    assert "://" not in text and "@import" not in text and "src=" not in text
    assert not [name for name, _ in reader.attributes if name.startswith("on")]
    assert ("svg" in reader.tags) == (kind != "refused")


def test_every_chart_has_words_and_numbers() -> None:
    for section in page(seen("host"), load_words("en")).sections:
        if section.chart is None:
            continue
        assert len(section.chart.alt) > 60
        (table,) = section.tables
        assert len(table.rows) > 2
        assert any(cell.value is not None for row in table.rows for cell in row)


def test_nothing_depends_on_when_it_is_made() -> None:
    for format, chart in (("html", "map"), ("md", "map"), ("png", "prices")):
        again = render(picture(seen().plan, seen().demand, MemoryGiven()), Wanted(None, format, chart, "en"))
        assert again == made(format, chart=chart)


def test_the_readers_own_settings_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    import matplotlib

    monkeypatch.setitem(matplotlib.rcParams, "font.size", 30.0)
    monkeypatch.setitem(matplotlib.rcParams, "svg.fonttype", "path")
    assert render(seen(), Wanted(None, "svg", "map", "en")) == made("svg")
    assert matplotlib.rcParams["font.size"] == 30.0


def evil() -> Picture:
    """A plan whose model, flags and notes are hostile."""
    honest = plan({"tp_size": 4}, gpu="b200")
    hostile = replace(
        honest,
        model=replace(honest.model, name=EVIL),
        flags={**honest.flags, "quantization": EVIL},
        notes=(EVIL,),
    )
    return picture(hostile, Demand(parse_contexts("4k"), 4), MemoryGiven())


def test_html_is_escaped_everywhere() -> None:
    hostile = evil()
    text = render(hostile, Wanted(None, "html", "map", "en")).decode()
    reader = Reader(text)
    assert not reader.tags & {"script", "img"}
    assert "<script" not in text and "<img" not in text
    assert sum(EVIL in part for part in reader.texts) >= 4  # title, heading, subtitle, note
    for chart in ("map", "frontier"):
        svg = ElementTree.fromstring(render(hostile, Wanted(None, "svg", chart, "en")))
        assert not [element for element in svg.iter() if element.tag.endswith(("script", "img"))]
        assert "alert(1)" in "".join(svg.itertext())


def test_markdown_is_escaped_everywhere() -> None:
    text = render(evil(), Wanted(None, "md", "map", "en")).decode()
    outside = re.sub(r"```sh\n.*?\n```", "", text, flags=re.DOTALL)
    assert not re.search(r"(?<!\\)<(?!/?(?:details|summary|sub|br)>)", outside)
    assert "http://" not in outside and "@someone" not in outside
    for line in outside.splitlines():
        if line.startswith("| "):
            assert len(re.findall(r"(?<!\\)\|", line)) in (5, 6, 7)


def test_markdown_is_short_and_says_it() -> None:
    text = made("md").decode()
    assert text.startswith("## Memory plan: GLM-5.3-Flash\n")
    assert "**" in text and "| max\\_" not in text
    assert text.count("<details>") == text.count("</details>") > 4
    assert len(text) < 60_000  # a pull request's comment holds 65,536 characters


@given(st.text())
def test_markdown_keeps_any_text_on_its_line(text: str) -> None:
    from glm_kvplan.show.printable import markdown as plain

    assert len(plain(text).splitlines()) <= 1


# --- single charts ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chart", charts.NAMES)
def test_single_charts(chart: str) -> None:
    root = ElementTree.fromstring(made("svg", "host", "zh", chart))
    words = "".join(root.itertext())
    assert root.get("role") == "img" and re.search("[\u4e00-\u9fff]", words)
    assert "GLM-5.3-Flash" in words  # the title says what it is of
    colours = set(re.findall(r"(?:fill|stroke): (#[0-9a-f]{6})", made("svg", "host", "zh", chart).decode()))
    assert colours <= set(charts_colours())
    png = made("png", "host", "zh", chart)
    assert png.startswith(b"\x89PNG") and len(png) > 10_000


def charts_colours() -> set[str]:
    from glm_kvplan.show.charts_style import COLOURS

    assert len(set(COLOURS.values())) == len(COLOURS)
    return {*COLOURS.values()}


def test_without_a_chinese_font_a_png_is_in_english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(charts, "chinese_font", lambda: None)
    words, note = charts.png_words(load_words("zh"))
    assert words.language == "en" and note is not None and "Chinese font" in note
    assert charts.png_words(load_words("en")) == (load_words("en"), None)


def test_every_colour_is_a_variable_of_the_page() -> None:
    from glm_kvplan.show.charts_style import COLOURS

    text = (DIRECTORY / "page.css").read_text(encoding="utf-8")
    used = set(re.findall(r"var\(--([a-z]+)\)", made("html", "host", "zh").decode()))
    defined = set(re.findall(r"--([a-z]+):", text))
    assert used <= defined <= {*COLOURS, *re.findall(r"var\(--([a-z]+)\)", text)}
    assert not re.search(r"(?:fill|stroke): #", made("html", "host", "zh").decode())


# --- words -----------------------------------------------------------------------------------------------------------


def fields(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def test_both_languages_say_the_same() -> None:
    texts = {
        language: tomllib.loads((DIRECTORY / f"words_{language}.toml").read_text(encoding="utf-8"))["texts"]
        for language in LANGUAGES
    }
    assert texts["en"].keys() == texts["zh"].keys()
    for key, english in texts["en"].items():
        assert fields(english) == fields(texts["zh"][key]), key


def test_every_word_is_used() -> None:
    modules = [path for kind in ("*page*.py", "charts*.py") for path in DIRECTORY.glob(kind)]
    source = "".join(path.read_text(encoding="utf-8") for path in modules)
    composed = ("panel_", "mark_", "key_", "host_", "memory_", "head_")
    for key in load_words("en").texts:
        stem = next((key.removeprefix(prefix) for prefix in composed if key.startswith(prefix)), key)
        assert re.search(f"[\"'](?:{key}|{stem})[\"']", source), key


def test_the_librarys_names_have_chinese() -> None:
    terms = load_words("zh").terms
    names = {
        memory_map.FREE,
        memory_map.RETURNED,
        *(text for kind in (*APART, *(each.segment for each in COMPONENTS)) for text in (kind.name, kind.note)),
    }
    for kind in ("mtp", "host", "refused"):
        answer = seen(kind).boot
        if answer.map is not None and answer.limits is not None and answer.needs is not None:
            names |= {text for segment in answer.map.segments for text in (segment.name, segment.note)}
            names |= {limit.name for limit in (*answer.limits.tokens, *answer.limits.requests, answer.limits.slots)}
            names |= {item.name for item in answer.needs.items}
        names |= {ledger.account.unit for ledger in seen(kind).ledgers}
    assert names <= terms.keys()


def test_verdicts_in_both_languages() -> None:
    for kind, english, chinese in (("host", "Yes: ", "可以："), ("refused", "No: the engine", "不行：引擎")):
        assert english in markdown(page(seen(kind), load_words("en")))
        assert chinese in markdown(page(seen(kind), load_words("zh")))
