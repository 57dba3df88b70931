"""What a report says and how it is printed: pages, Markdown, single charts, words, and hostile text."""

import ast
import re
import string
import tomllib
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from paths import ROOT
from sources import parsed
from test_page_words import unknown

from glm_kvplan.contexts import parse_contexts
from glm_kvplan.engines.planner import plan
from glm_kvplan.engines.sglang.answers.advise_page import advise_page
from glm_kvplan.engines.sglang.answers.report_answer import ReportAnswer, answer_report
from glm_kvplan.engines.sglang.answers.report_page import report_page
from glm_kvplan.engines.sglang.components import COMPONENTS
from glm_kvplan.engines.sglang.components.component import PADDING, SLAB
from glm_kvplan.engines.sglang.sizing import memory_map
from glm_kvplan.engines.sglang.sizing.host_answer import UNKNOWN_HOST, HostGiven
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.show import drawing
from glm_kvplan.show.chart import PanelChart, Stack
from glm_kvplan.show.drawing_style import COLOURS
from glm_kvplan.show.html import html
from glm_kvplan.show.languages import LANGUAGES, load_words
from glm_kvplan.show.markdown import markdown
from glm_kvplan.show.page import Cell, Figure, Line, Page, Table
from glm_kvplan.show.page_file import page_bytes
from glm_kvplan.show.said import ENGLISH, Words
from glm_kvplan.workload import Demand

SHOW = ROOT / "glm_kvplan" / "show"
CHARTS = ("map", "frontier", "prices", "split", "host")
HOST = {"tp_size": 8, "dp_size": 8, "enable_dp_attention": True, "enable_hierarchical_cache": True}
EVIL = '</title><script>alert(1)</script><img src="http://evil.invalid/x" onerror=alert(2)>&"\'|`$x$`|@someone#1'
VOID = {"meta", "br", "wbr"}


MADE = {"command": "kvplan report -o plan.html --gpu h200", "day": "2026-11-29"}


@cache
def seen(kind: str = "mtp", context: str = "0.8:8k,0.2:128k", concurrency: int = 64) -> ReportAnswer:
    flags: dict[str, Any] = {"mtp": {"tp_size": 4, "speculative_algorithm": "NEXTN"}, "host": HOST}.get(kind, {})
    if kind == "refused":
        flags = {"tp_size": 4, "max_mamba_cache_size": 9000}
    gpu = "h200" if kind == "host" else "b200"
    memory = MemoryGiven(176.25, 130.0) if kind == "refused" else MemoryGiven()
    demand = Demand(parse_contexts(context), concurrency)
    return answer_report(plan(flags or {"tp_size": 8}, gpu=gpu), demand, memory, **MADE)


@cache
def page(kind: str = "mtp") -> Page:
    return report_page(seen(kind))


@cache
def made(format: str, kind: str = "mtp", language: str = "en", chart: str = "map") -> bytes:
    return page_bytes(page(kind), load_words(language), format, chart)[0]


@pytest.mark.parametrize("kind", ["mtp", "host", "refused"])
def test_a_report_speaks_the_renderers_words(kind: str) -> None:
    assert unknown(page(kind)) == set()


@pytest.mark.parametrize("kind", ["mtp", "host", "refused"])
def test_a_chart_that_is_not_there_has_a_reason(kind: str) -> None:
    shown, missing = {chart.name for chart in page(kind).charts}, dict(page(kind).missing)
    assert {*missing} <= {*CHARTS} == shown | {*missing}


def test_a_server_that_does_not_start_serves_nobody() -> None:
    answer = seen("refused")
    assert answer.start.failure is not None
    assert (answer.served.requests, answer.mean_served, answer.span) == (0, 0, (0, 0))
    assert answer.ledgers == () and answer.frontier is answer.ratio is None


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
    figures = [block for section in page("host").sections for block in section.blocks if isinstance(block, Figure)]
    assert [figure.chart.name for figure in figures] == list(CHARTS)
    for figure in figures:
        assert len(str(figure.chart.alt)) > 60
        table = figure.numbers
        assert table is not None and len(table.rows) > 2
        values = [cell.value if isinstance(cell, Cell) else cell for row in table.rows for cell in row.cells]
        assert any(isinstance(value, int) for value in values)


def test_nothing_depends_on_when_it_is_made() -> None:
    for format, chart in (("html", "map"), ("md", "map"), ("png", "prices")):
        again = report_page(seen.__wrapped__())
        assert page_bytes(again, ENGLISH, format, chart)[0] == made(format, chart=chart)


def test_the_readers_own_settings_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    import matplotlib

    monkeypatch.setitem(matplotlib.rcParams, "font.size", 30.0)
    monkeypatch.setitem(matplotlib.rcParams, "svg.fonttype", "path")
    assert page_bytes(page(), ENGLISH, "svg", "map")[0] == made("svg")
    assert matplotlib.rcParams["font.size"] == 30.0


@cache
def evil() -> Page:
    """A plan whose model, flags and notes are hostile."""
    honest = plan({"tp_size": 4}, gpu="b200")
    hostile = replace(
        honest,
        model=replace(honest.model, name=EVIL),
        flags={**honest.flags, "quantization": EVIL},
        notes=(EVIL,),
    )
    return report_page(answer_report(hostile, Demand(parse_contexts("4k"), 4), MemoryGiven(), command=EVIL, day="now"))


def test_html_is_escaped_everywhere() -> None:
    text = page_bytes(evil(), ENGLISH, "html")[0].decode()
    reader = Reader(text)
    assert not reader.tags & {"script", "img"}
    assert "<script" not in text and "<img" not in text
    assert sum(EVIL in part for part in reader.texts) >= 5  # title, heading, subtitle, note, command
    for chart in ("map", "frontier"):
        svg = ElementTree.fromstring(page_bytes(evil(), ENGLISH, "svg", chart)[0])
        assert not [element for element in svg.iter() if element.tag.endswith(("script", "img"))]
        assert "alert(1)" in "".join(svg.itertext())


def test_markdown_is_escaped_everywhere() -> None:
    text = page_bytes(evil(), ENGLISH, "md")[0].decode()
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


@pytest.mark.parametrize("chart", CHARTS)
def test_single_charts(chart: str) -> None:
    root = ElementTree.fromstring(made("svg", "host", "zh", chart))
    words = "".join(root.itertext())
    assert root.get("role") == "img" and re.search("[\u4e00-\u9fff]", words)
    assert "GLM-5.3-Flash" in words  # the title says what it is of
    colours = set(re.findall(r"(?:fill|stroke): (#[0-9a-f]{6})", made("svg", "host", "zh", chart).decode()))
    assert len(set(COLOURS.values())) == len(COLOURS)
    assert colours <= set(COLOURS.values())
    png = made("png", "host", "zh", chart)
    assert png.startswith(b"\x89PNG") and len(png) > 10_000


def test_without_a_chinese_font_a_png_is_in_english(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "chinese_font", lambda: None)
    words, note = drawing.png_words(load_words("zh"))
    assert words.language == "en" and note is not None and "Chinese font" in note
    assert drawing.png_words(load_words("en")) == (load_words("en"), None)


def test_every_colour_is_a_variable_of_the_page() -> None:
    text = (SHOW / "page.css").read_text(encoding="utf-8")
    used = set(re.findall(r"var\(--([a-z]+)\)", made("html", "host", "zh").decode()))
    defined = set(re.findall(r"--([a-z]+):", text))
    assert used <= defined <= {*COLOURS, *re.findall(r"var\(--([a-z]+)\)", text)}
    assert not re.search(r"(?:fill|stroke): #", made("html", "host", "zh").decode())


# --- words -----------------------------------------------------------------------------------------------------------


def fields(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


def phrases() -> dict[str, str]:
    found = tomllib.loads((SHOW / "words_zh.toml").read_text(encoding="utf-8"))
    assert LANGUAGES == ("en", "zh")
    return found


def test_both_languages_say_the_same() -> None:
    for english, chinese in phrases().items():
        assert fields(english) == fields(chinese), english


def test_every_word_is_used() -> None:
    modules = (ROOT / "glm_kvplan").rglob("*.py")
    nodes = (node for path in modules for node in ast.walk(parsed(path)))
    texts = {node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)}

    def spelled(phrase: str) -> bool:
        """In one text, or in texts that are joined."""
        if phrase in texts:
            return True
        parts = (phrase[:at] for at in range(1, len(phrase)) if phrase[:at] in texts)
        return any(spelled(phrase[len(part) :]) for part in parts)

    assert [phrase for phrase in phrases() if not spelled(phrase)] == []


class Asked(dict[str, str]):
    """Phrases that remember which were asked for and are missing."""

    def get(self, phrase: str, default: Any = None) -> Any:
        if phrase not in self:
            MISSED.add(phrase)
        return super().get(phrase, default)


MISSED: set[str] = set()
KINDS: dict[str, tuple[dict[str, Any], str, int, MemoryGiven, HostGiven]] = {
    "fits": ({"tp_size": 8}, "8k", 8, MemoryGiven(), UNKNOWN_HOST),
    "one": ({"tp_size": 8}, "0.5:8k,0.5:64k", 1, MemoryGiven(), UNKNOWN_HOST),
    "layout": ({"tp_size": 4}, "256k", 64, MemoryGiven(), UNKNOWN_HOST),
    "dies": ({"tp_size": 4, "mem_fraction_static": 0.97}, "128k", 4, MemoryGiven(176.25, 130.0), UNKNOWN_HOST),
    "over": ({"tp_size": 4, "mem_fraction_static": 0.999}, "8k", 4, MemoryGiven(176.25, 130.0), UNKNOWN_HOST),
    "fixed": ({"tp_size": 8, "max_mamba_cache_size": 20, "max_total_tokens": 64000}, "8k", 64, MemoryGiven(),
              UNKNOWN_HOST),
    "still": ({"tp_size": 8, "disable_radix_cache": True, "max_running_requests": 64}, "4k", 64, MemoryGiven(),
              UNKNOWN_HOST),
    "small host": ({**HOST, "hicache_ratio": 2.0}, "4k", 8, MemoryGiven(), HostGiven(host_bytes=64 << 30)),
    "host": ({**HOST, "kv_cache_dtype": "fp8_e4m3"}, "4k", 8, MemoryGiven(), HostGiven(host_bytes=2000 << 30)),
    "host by size": ({"tp_size": 4, "enable_hierarchical_cache": True, "hicache_size": 90}, "4k", 8, MemoryGiven(),
                     UNKNOWN_HOST),
    "decode": ({"tp_size": 8, "disaggregation_mode": "decode", "max_running_requests": 32}, "64k", 32, MemoryGiven(),
               UNKNOWN_HOST),
    "draft": ({"tp_size": 4, "speculative_algorithm": "EAGLE3", "speculative_draft_model_path": "/nowhere/draft"},
              "32k", 8, MemoryGiven(177.0, 126.0), UNKNOWN_HOST),
    "stages": ({"tp_size": 4, "pp_size": 2}, "8k", 8, MemoryGiven(), UNKNOWN_HOST),
    "refused": ({"tp_size": 4, "max_mamba_cache_size": 9000}, "8k", 8, MemoryGiven(176.25, 130.0), UNKNOWN_HOST),
}  # fmt: skip


@cache
def answer(kind: str) -> ReportAnswer:
    flags, context, concurrency, memory, host = KINDS[kind]
    gpu = "b200" if memory.pre_gib else "h200"
    made = plan(flags, gpu=gpu, engine="0.5.23")
    return answer_report(made, Demand(parse_contexts(context), concurrency), memory, host, **MADE)


@pytest.mark.parametrize("kind", KINDS)
def test_every_sentence_has_chinese(kind: str) -> None:
    MISSED.clear()
    words, made = Words("zh", Asked(phrases())), report_page(answer(kind))
    html(made, words)
    for chart in made.charts:
        with drawing.style():
            drawing.figure(chart, words, drawing.Shape())
        words(chart.alt)
    assert set() == MISSED


def test_the_librarys_names_have_chinese() -> None:
    names = {
        memory_map.FREE,
        memory_map.RETURNED,
        *(text for kind in (PADDING, SLAB, *(each.segment for each in COMPONENTS)) for text in (kind.name, kind.note)),
    }
    for kind in ("mtp", "host", "refused"):
        start = seen(kind).start
        if start.memory_map is not None and start.limits is not None and start.needs is not None:
            names |= {text for segment in start.memory_map.segments for text in (segment.name, segment.note)}
            limits = (*start.limits.tokens, *start.limits.requests, start.limits.state_slots)
            names |= {limit.name for limit in limits}
            names |= {item.name for item in start.needs.items}
        names |= {ledger.account.unit for ledger in seen(kind).ledgers}
    assert names <= phrases().keys()


def test_verdicts_in_both_languages() -> None:
    for kind, english, chinese in (
        ("host", "Yes: ", "可以："),
        ("refused", "now: the engine refuses", "按现有参数：引擎拒绝启动"),
    ):
        assert english in markdown(page(kind))
        assert chinese in markdown(page(kind), load_words("zh"))


# --- what it must say ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_report_and_advise_give_one_verdict(kind: str) -> None:
    """One sentence for both; where all fit as launched, flags serve them all, too; where they do not, the page says
    what advise says.
    """
    found = answer(kind)
    advised, asked = found.advised, found.demand.concurrency
    of_advise, of_report = advise_page(advised).verdict, report_page(found).verdict
    assert of_advise is not None and of_report is not None
    assert of_advise[:2] == of_report[:2]  # sentence and tone; each has remarks of its own
    assert found.holds == advised.holds == (of_report.tone != "bad")
    if advised.now.serves(found.demand):
        assert advised.holds and found.start.holds and found.served.requests >= asked
    made = markdown(report_page(found))
    if (
        not advised.now.serves(found.demand)
        and found.start.failure is None
        and found.served.requests < asked
        and advised.sizes is not None
    ):
        assert f"With the flags at the end {advised.served.requests:,} of {asked:,} fit" in made
    assert advised.holds or (advised.layouts == ()) == ("layout of one server that serves" not in made)


def test_the_flags_to_paste_serve_it_all() -> None:
    """Where this layout does not: those of the nearest that does, as one launch; where none does, that is said."""
    far = report_page(seen("tp8", "128k", 4000))
    assert "no layout nearby serves it all" in markdown(far)
    found = answer("layout")
    assert not found.advised.holds
    nearest = found.advised.layouts[0]
    again = plan(dict(nearest.flags), gpu="h200", engine="0.5.23")
    assert again.gpus == nearest.gpus > 4
    typed = answer_report(again, Demand(parse_contexts("256k"), 64), MemoryGiven())
    assert typed.served.requests == 64 and typed.start.failure is None
    (section,) = (each for each in report_page(found).sections if str(each.title) == "Flags to paste")
    codes = [block.text for block in section.blocks if not isinstance(block, Line | Table | Figure)]
    for name, value in nearest.flags.items():
        flag = "--" + name.replace("_", "-")
        assert flag in codes[1] and (value is True or f"{flag} {value}" in codes[1])


def test_the_three_ledgers_have_three_colours() -> None:
    looks: dict[str, set[str]] = {}
    for chart in report_page(answer("host")).charts:
        bars = chart.bars if isinstance(chart, Stack) else ()
        if isinstance(chart, PanelChart):
            bars = tuple(bar for panel in chart.panels for bar in panel.bars)
        for bar in bars:
            looks.setdefault(str(bar.name), set()).add(bar.look)
    assert looks["latent KV"] == looks["KV"] == looks["KV pool"] == {"latent"}
    assert looks["index K"] == looks["INDEXER"] == {"index"}
    assert looks["state slots"] == looks["MAMBA"] == looks["state pool"] == {"states"}


def test_small_pools_are_one_bar() -> None:
    """And each is in the table under it; the bars still add up."""
    figures = (block for each in page("host").sections for block in each.blocks if isinstance(block, Figure))
    (figure,) = (each for each in figures if each.chart.name == "map")
    stack, memory = figure.chart, seen("host").start.memory_map
    assert isinstance(stack, Stack) and memory is not None and figure.numbers is not None
    assert sum(bar.value for bar in stack.bars) == stack.total == memory.total_bytes
    assert len(stack.bars) < len(memory.segments) == len(figure.numbers.rows) - 1
    (small,) = (bar for bar in stack.bars if "small pools" in str(bar.name))
    assert 0 < small.value < stack.total / 50 and small.mark


def test_who_made_it() -> None:
    for format in ("html", "md"):
        text = made(format).decode()
        assert MADE["command"] in text and MADE["day"] in text and "kvplan " in text
