"""The report in a real browser, from disk and without a network. Skipped, with the reason, where there is none.

Needs Chromium or Chrome with its driver, and selenium (the `browser` extra).
"""

import math
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from glm_kvplan.contexts import parse_contexts
from glm_kvplan.engines.planner import plan
from glm_kvplan.engines.sglang.answers.report_answer import ReportAnswer, answer_report
from glm_kvplan.engines.sglang.answers.report_charts import PANELS
from glm_kvplan.engines.sglang.answers.report_page import report_page
from glm_kvplan.engines.sglang.answers.solve_page import price_move, unsure
from glm_kvplan.engines.sglang.sizing.host_answer import HostGiven
from glm_kvplan.engines.vllm.answers.report_answer import answer_report as vllm_report
from glm_kvplan.engines.vllm.answers.report_page import report_page as vllm_page
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.show.chart import PanelChart, Stack
from glm_kvplan.show.languages import LANGUAGES, load_words
from glm_kvplan.show.page_file import page_bytes
from glm_kvplan.workload import Demand

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
DRIVER = shutil.which("chromedriver")
pytest.importorskip("selenium", reason="no browser test: selenium is not installed (pip install 'glm-kvplan[browser]')")
pytestmark = [
    pytest.mark.skipif(BROWSER is None, reason="no browser test: Chromium is not installed"),
    pytest.mark.skipif(DRIVER is None, reason="no browser test: chromedriver is not installed"),
]

# Nothing of the browser's own may reach for the network, and nothing could: every request goes to a closed port.
SWITCHES = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update", "--disable-default-apps"),
    *("--proxy-server=127.0.0.1:1", "--proxy-bypass-list=<-loopback>", "--hide-scrollbars"),
)
DESKTOP, PHONE = 1280, 390
FLAGS = {
    "tp_size": 8,
    "dp_size": 8,
    "enable_dp_attention": True,
    "kv_cache_dtype": "fp8_e4m3",
    "enable_hierarchical_cache": True,
    "speculative_algorithm": "NEXTN",
}
CHARTS = ("map", "frontier", "prices", "split", "host")


@pytest.fixture(scope="module")
def seen() -> ReportAnswer:
    made = plan(FLAGS, gpu="h200", engine="0.5.23")
    demand = Demand(parse_contexts("0.8:8k,0.2:128k"), 200)
    command = f"kvplan report -o plan.html {' '.join(f'--long-option-{number} value' for number in range(20))}"
    return answer_report(made, demand, MemoryGiven(), HostGiven(2000 << 30), command=command, day="2026-11-29")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    from selenium import webdriver
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER or ""
    for switch in (*SWITCHES, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(switch)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    yield driver
    driver.quit()


class Opened:
    """The page as opened from disk in a window of one width."""

    def __init__(self, browser: Any, path: Path, width: int, **media: str) -> None:
        self.browser, self.path = browser, path
        size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        features = [{"name": name.replace("_", "-"), "value": value} for name, value in media.items()]
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        browser.get_log("browser")
        browser.get_log("performance")
        browser.get(path.as_uri())

    def ask(self, script: str, *arguments: Any) -> Any:
        return self.browser.execute_script(script, *arguments)


@pytest.fixture(scope="module")
def page(seen: ReportAnswer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("report") / "plan.html"
    target.write_bytes(page_bytes(report_page(seen), load_words("en"), "html")[0])
    return target


SIZES = """
return Object.fromEntries([...document.querySelectorAll('figure')].map(figure => {
  const shown = [...figure.querySelectorAll('svg')].filter(svg => svg.getClientRects().length);
  const box = shown[0].getBoundingClientRect();
  return [figure.id, [shown.length, box.width, box.height, box.left, box.right]];
}));
"""
TABLE = """
const titled = section => section.querySelector('h2')?.textContent === arguments[0];
const section = [...document.querySelectorAll('section')].find(titled);
return [...section.querySelectorAll('tbody tr')].map(row => [...row.cells].map(cell =>
  [cell.textContent, cell.dataset.value === undefined ? null : Number(cell.dataset.value)]));
"""
BARS = """
const found = {};
for (const bar of document.querySelectorAll('#chart-' + arguments[0] + ' svg.wide [id^=' + arguments[0] + '-wide-]'))
  if (bar.tagName === 'g') found[bar.id.slice((arguments[0] + '-wide-').length)] = bar.getBBox();
return Object.fromEntries(Object.entries(found).map(([id, box]) => [id, [box.x, box.width, box.y, box.height]]));
"""


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_opens_from_disk_without_a_network(browser: Any, page: Path, width: int) -> None:
    opened = Opened(browser, page, width)
    assert opened.browser.get_log("browser") == []  # errors and warnings, the page's policy's among them
    sent = [
        entry["message"] for entry in browser.get_log("performance") if "Network.requestWillBeSent" in entry["message"]
    ]
    assert all(page.as_uri() in message for message in sent)
    assert opened.ask("return performance.getEntriesByType('resource').length") == 0
    assert opened.ask("return document.documentElement.scrollWidth") <= width
    assert opened.ask("return document.compatMode") == "CSS1Compat"


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_every_chart_has_a_size(browser: Any, page: Path, width: int) -> None:
    sizes = Opened(browser, page, width).ask(SIZES)
    assert sizes.keys() == {f"chart-{name}" for name in CHARTS}
    for shown, wide, high, left, right in sizes.values():
        assert shown == 1
        assert wide > 0.75 * min(width, 62 * 16) and high > 120
        assert left >= 0 and right <= width


@pytest.mark.parametrize("width", [DESKTOP, PHONE])
def test_words_of_charts_are_readable_and_inside(browser: Any, page: Path, width: int) -> None:
    """No text of a chart is smaller than 9 pixels or sticks out of its chart."""
    script = """
    return [...document.querySelectorAll('figure svg text')].filter(text => text.getClientRects().length)
      .map(text => [text.textContent, text.getBoundingClientRect(), text.closest('svg').getBoundingClientRect(),
                    parseFloat(getComputedStyle(text).fontSize) * text.closest('svg').getScreenCTM().a])
      .map(([words, box, all, size]) =>
        [words, size, box.left - all.left, all.right - box.right, box.top - all.top, all.bottom - box.bottom]);
    """
    for words, size, *room in Opened(browser, page, width).ask(script):
        assert size >= 9, (words, size)
        assert min(room) >= -2, (words, room)


def test_the_numbers_are_the_librarys(browser: Any, page: Path, seen: ReportAnswer) -> None:
    opened, answer = Opened(browser, page, DESKTOP), seen.start
    memory, host, prices = answer.memory_map, answer.host, answer.prices
    assert memory is not None and seen.frontier is not None and seen.ratio is not None and host is not None
    rows = opened.ask(TABLE, "One rank's memory, to scale")
    expected = [(segment.name, segment.nbytes) for segment in memory.segments]
    assert [(row[0][0], row[1][1]) for row in rows] == [*expected, ("total", memory.total_bytes)]
    moved = unsure(answer)
    assert {segment.name for segment in memory.segments if segment.certainty == "exact"} > moved
    exact = [row[1][0] for row in rows if row[4][0] == "exact" and row[0][0] not in moved]
    assert exact == [
        f"{segment.nbytes:,}"
        for segment in memory.segments
        if segment.certainty == "exact" and segment.name not in moved
    ]
    assert all(row[1][0].startswith("~") for row in rows if row[4][0] == "estimated" or row[0][0] in moved)
    rows = opened.ask(TABLE, "Context against concurrency")
    assert [(row[0][1], row[1][1], row[2][0], row[3][1]) for row in rows] == list(seen.frontier.marks)
    rows = opened.ask(TABLE, "What each knob buys")
    for row, price in zip(rows, prices or (), strict=True):
        assert row[0][0] == price.knob
        if price.failure is None:
            assert [cell[1] for cell in row[2:]] == [panel.value(price) for panel in PANELS]
    rows = opened.ask(TABLE, "Tokens against state slots")
    curve = [(f"{point.ratio:g}", point.slots, point.tokens, point.requests) for point in seen.ratio.points]
    assert [(row[0][0], *(cell[1] for cell in row[1:])) for row in rows[: len(curve)]] == curve
    assert [cell[1] for cell in rows[-1][1:3]] == [seen.ratio.need_slots, seen.ratio.need_tokens]
    rows = opened.ask(TABLE, "Host memory (HiCache)")
    assert [row[4][1] for row in rows] == [*(pool.nbytes for pool in host.fullest.pools), host.bytes_per_rank]
    assert rows[-1][5][1] == max(host.bytes_by_host)
    sizes = opened.ask(TABLE, "What the engine sizes")
    assert [row[1][1] for row in sizes[2:]] == list(answer.sizes)


def test_bars_are_as_long_as_their_numbers(browser: Any, page: Path, seen: ReportAnswer) -> None:
    """Measured in the drawing: the map's bars in bytes, each price panel in its unit, the host's in bytes."""
    opened, answer = Opened(browser, page, DESKTOP), seen.start
    assert answer.host is not None
    bars = opened.ask(BARS, "map")
    (stack,) = (chart for chart in report_page(seen).charts if isinstance(chart, Stack))
    parts = stack.bars
    longest = max(range(len(parts)), key=lambda number: parts[number].value)
    scale = bars[f"bar-{longest}"][1] / parts[longest].value
    left, start = bars["bar-0"][0], 0
    for number, part in enumerate(parts):
        for kind in ("bar", "card"):
            x, width, *_ = bars[f"{kind}-{number}"]
            assert math.isclose(width, part.value * scale, abs_tol=0.05)
            assert math.isclose(x - left, start * scale, abs_tol=0.05)
        start += int(part.value)
    bars = opened.ask(BARS, "prices")
    (drawn,) = (each for each in report_page(seen).charts if each.name == "prices")
    assert isinstance(drawn, PanelChart) and len(drawn.panels) == len(PANELS)
    shown = {(str(bar.name), str(bar.note)) for bar in drawn.panels[0].bars}
    for number, panel in enumerate(PANELS):
        prices = enumerate(each for each in answer.prices or () if (each.knob, str(price_move(each))) in shown)
        values = {row: panel.value(price) for row, price in prices if price.failure is None}
        most = max(map(abs, values.values()))
        row = next(row for row, value in values.items() if abs(value) == most)
        scale = bars[f"{number}-{row}"][1] / most if most else 0.0
        for row, value in values.items():
            assert math.isclose(bars[f"{number}-{row}"][1], abs(value) * scale, abs_tol=0.05)
    bars = opened.ask(BARS, "host")
    pools = answer.host.fullest.pools
    scale = bars["0-0"][1] / pools[0].nbytes
    for number, pool in enumerate(pools):
        assert math.isclose(bars[f"0-{number}"][1], pool.nbytes * scale, abs_tol=0.05)


def test_the_planned_point_lies_under_the_line_where_it_fits(browser: Any, page: Path, seen: ReportAnswer) -> None:
    """The point's place on the logarithmic scales, measured against two marks of the line."""
    assert seen.frontier is not None
    bars = Opened(browser, page, DESKTOP).ask(BARS, "frontier")
    points = seen.frontier.points
    x, width, y, height = bars["line"]
    first, last = points[0], points[-1]
    across = width / math.log(last.context / first.context)
    down = height / math.log(max(p.requests for p in points) / min(p.requests for p in points))
    star = bars["planned"]
    expected_x = x + across * math.log(seen.demand.mean_context / first.context)
    expected_y = y + down * math.log(max(p.requests for p in points) / seen.demand.concurrency)
    assert math.isclose(star[0] + star[1] / 2, expected_x, abs_tol=1.5)
    assert math.isclose(star[2] + star[3] / 2, expected_y, abs_tol=3)


def test_dark_and_print(browser: Any, page: Path) -> None:
    """Dark readers get light words on dark ground, charts included; paper gets the opposite and every table."""
    words = (
        "const style = getComputedStyle(document.querySelector('figure svg text')); const body = getComputedStyle"
        "(document.body); return [style.fill, body.backgroundColor].map(c => c.match(/\\d+/g).slice(0, 3).map(Number))"
    )
    ink, ground = Opened(browser, page, DESKTOP, prefers_color_scheme="dark").ask(words)
    assert contrast(ink, ground) > 7 and sum(ground) < 100
    ink, ground = Opened(browser, page, DESKTOP, prefers_color_scheme="light").ask(words)
    assert contrast(ink, ground) > 7 and sum(ground) > 700
    opened = Opened(browser, page, DESKTOP, prefers_color_scheme="dark")
    opened.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    ink, ground = opened.ask(words)
    assert contrast(ink, ground) > 7 and sum(ground) > 700
    tables = "return [...document.querySelectorAll('details table')].map(t => t.getBoundingClientRect().height)"
    assert min(opened.ask(tables)) > 30
    opened.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def contrast(one: list[int], other: list[int]) -> float:
    """WCAG's contrast of two colours."""

    def light(colour: list[int]) -> float:
        parts = [part / 255 for part in colour]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((light(one), light(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_readers_of_the_screen_hear_the_charts(browser: Any, page: Path) -> None:
    """The browser's own accessibility tree: each chart shown is an image with a name and a description."""
    opened = Opened(browser, page, DESKTOP)
    nodes = opened.browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    images = [
        node["name"]["value"]
        for node in nodes
        if node.get("role", {}).get("value") in ("image", "img") and not node.get("ignored")
    ]
    assert len(images) == len(CHARTS)
    assert all(len(name) > 60 for name in images)


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("engine", ["sglang", "vllm"])
def test_nothing_is_cut_on_a_phone(
    browser: Any, seen: ReportAnswer, engine: str, language: str, tmp_path: Path
) -> None:
    """With every table unfolded: no box hides a part of its content beside it, no text lies outside the window."""
    made = report_page(seen)
    if engine == "vllm":
        wanted = Demand(parse_contexts("0.8:8k,0.2:128k"), 200)
        other = plan({"tensor_parallel_size": 4}, gpu="h200", engine="vllm-0.33.0")
        made = vllm_page(vllm_report(other, wanted, MemoryGiven(), command="kvplan report", day="2026-11-29"))
    target = tmp_path / "plan.html"
    target.write_bytes(page_bytes(made, load_words(language), "html")[0])
    opened = Opened(browser, target, PHONE)
    script = """
    document.querySelectorAll('details').forEach(each => each.open = true);
    const cut = [...document.querySelectorAll('body *:not(svg *)')].filter(each => each.getClientRects().length)
      .filter(each => each.scrollWidth > each.clientWidth + 1 && getComputedStyle(each).display !== 'inline'
                      || each.getBoundingClientRect().right > innerWidth + 1);
    return [cut.map(each => each.tagName + ' ' + each.className + ' ' + each.textContent.slice(0, 40)),
            document.documentElement.scrollWidth];
    """
    cut, width = opened.ask(script)
    assert cut == [] and width <= PHONE


def test_chinese(browser: Any, seen: ReportAnswer, tmp_path: Path) -> None:
    target = tmp_path / "plan.html"
    target.write_bytes(page_bytes(report_page(seen), load_words("zh"), "html")[0])
    opened = Opened(browser, target, PHONE)
    assert opened.browser.get_log("browser") == []
    assert opened.ask("return document.documentElement.lang") == "zh-Hans"
    assert "显存规划" in opened.ask("return document.title")
    assert opened.ask("return document.documentElement.scrollWidth") <= PHONE
