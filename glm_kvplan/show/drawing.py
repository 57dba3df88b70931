"""The charts of a page drawn by matplotlib: as SVG or PNG of their own, or as SVG elements of a page."""

from collections.abc import Callable
from io import BytesIO
from typing import TYPE_CHECKING, Any

from glm_kvplan.show.chart import Chart, CurveChart, FrontierChart, PanelChart, Stack
from glm_kvplan.show.drawing_style import CHINESE, NARROW, WIDE, Shape, chinese_font, require_charts, style
from glm_kvplan.show.drawing_svg import Described, embedded, standalone
from glm_kvplan.show.page import Page
from glm_kvplan.show.said import ENGLISH, Words

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from matplotlib.figure import Figure

PNG_DPI = 200


def figure(chart: Chart, words: Words, shape: Shape) -> "Figure":
    """One chart. Call it inside `drawing_style.style`."""
    from glm_kvplan.show import draw_curve, draw_frontier, draw_panels, draw_stack

    draws: dict[type, Callable[[Any, Words, Shape], Figure]] = {
        Stack: draw_stack.draw,
        FrontierChart: draw_frontier.draw,
        CurveChart: draw_curve.draw,
        PanelChart: draw_panels.draw,
    }
    return draws[type(chart)](chart, words, shape)


def svg(page: Page, chart: Chart, words: Words) -> str:
    """One chart with its title as a file of its own. Its text is text: the viewer's fonts show it."""
    require_charts()
    with style():
        drawn = figure(chart, words, Shape(WIDE, _title(page, chart, words)))
        return standalone(_svg_bytes(drawn), _described(chart, words), ("DejaVu Sans", *CHINESE))


def png(page: Page, chart: Chart, words: Words) -> bytes:
    """One chart with its title as pixels, twice as fine as on screen."""
    require_charts()
    with style(_fonts(words)):
        out = BytesIO()
        drawn = figure(chart, words, Shape(WIDE, _title(page, chart, words)))
        drawn.savefig(out, format="png", dpi=PNG_DPI, metadata={"Software": None})
        return out.getvalue()


def png_words(words: Words) -> tuple[Words, str | None]:
    """The words that can be drawn here, and a note where they are not those asked for."""
    require_charts()
    if words.language == "zh" and chinese_font() is None:
        return ENGLISH, "no Chinese font is installed here; the picture is in English (--format svg is not)"
    return words, None


def for_page(page: Page, words: Words) -> "dict[str, tuple[Element, ...]]":
    """The charts of a page by name, each drawn for wide and for narrow windows."""
    require_charts()
    with style():
        return {
            chart.name: tuple(
                embedded(_svg_bytes(figure(chart, words, Shape(width))), _described(chart, words), kind)
                for kind, width in (("wide", WIDE), ("narrow", NARROW))
            )
            for chart in page.charts
        }


def _described(chart: Chart, words: Words) -> Described:
    return Described(chart.name, words(chart.title), words(chart.alt))


def _fonts(words: Words) -> tuple[str, ...]:
    name = chinese_font() if words.language == "zh" else None
    return () if name is None else (name,)


def _title(page: Page, chart: Chart, words: Words) -> str:
    text = f"{words(chart.title)}: {words(page.lead[0].text)}"
    return text if len(text) <= 110 else text[:109] + "…"


def _svg_bytes(drawn: "Figure") -> bytes:
    out = BytesIO()
    drawn.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return out.getvalue()
