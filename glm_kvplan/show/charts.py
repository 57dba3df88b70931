"""The charts of a report: drawn by matplotlib, as SVG or PNG of their own, or as SVG elements of a page."""

from collections.abc import Callable
from io import BytesIO
from typing import TYPE_CHECKING

from glm_kvplan.answers.pictures.picture import Picture
from glm_kvplan.errors import InputError
from glm_kvplan.show.charts_style import CHINESE, NARROW, WIDE, Shape, chinese_font, require_charts, style
from glm_kvplan.show.words import Words, load_words

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from matplotlib.figure import Figure

    from glm_kvplan.show.report_page import Chart

NAMES = ("map", "frontier", "prices", "split", "host")
PNG_DPI = 200


def require_chart(seen: Picture, name: str) -> None:
    """Raises InputError for a chart that this plan does not have."""
    if name not in NAMES:
        raise InputError(f"--chart {name!r}: one of {', '.join(NAMES)}")
    answer = seen.boot
    if answer.failure is not None:
        raise InputError(f"--chart {name}: the engine refuses to start, there is nothing to draw: {answer.failure}")
    if name == "host" and answer.host is None:
        raise InputError("--chart host: HiCache is off; add --enable-hierarchical-cache")
    if name == "prices" and not seen.prices:
        raise InputError("--chart prices: no knob of this deployment can be moved by one unit")
    if name == "split" and (seen.ratio is None or not seen.ratio.moves):
        raise InputError("--chart split: the radix cache is off, mamba_full_memory_ratio does nothing here")


def figure(seen: Picture, words: Words, name: str, shape: Shape) -> "Figure":
    """One chart of the picture. Call it inside `charts_style.style`."""
    from glm_kvplan.show import charts_frontier, charts_host, charts_map, charts_prices, charts_split

    draws: dict[str, Callable[[Picture, Words, Shape], Figure]] = {
        "map": charts_map.draw,
        "frontier": charts_frontier.draw,
        "prices": charts_prices.draw,
        "split": charts_split.draw,
        "host": charts_host.draw,
    }
    return draws[name](seen, words, shape)


def svg(seen: Picture, words: Words, chart: "Chart") -> str:
    """One chart with its title as a file of its own. Its text is text: the viewer's fonts show it."""
    from glm_kvplan.show.charts_svg import standalone

    require_charts()
    with style():
        drawn = figure(seen, words, chart.name, Shape(WIDE, _title(seen, chart)))
        return standalone(_svg_bytes(drawn), chart, ("DejaVu Sans", *CHINESE))


def png(seen: Picture, words: Words, chart: "Chart") -> bytes:
    """One chart with its title as pixels, twice as fine as on screen."""
    require_charts()
    with style(_fonts(words)):
        out = BytesIO()
        drawn = figure(seen, words, chart.name, Shape(WIDE, _title(seen, chart)))
        drawn.savefig(out, format="png", dpi=PNG_DPI, metadata={"Software": None})
        return out.getvalue()


def png_words(words: Words) -> tuple[Words, str | None]:
    """The words that can be drawn here, and a note where they are not those asked for."""
    require_charts()
    if words.language == "zh" and chinese_font() is None:
        return load_words("en"), "no Chinese font is installed here; the picture is in English (--format svg is not)"
    return words, None


def for_page(seen: Picture, words: Words, charts: "tuple[Chart, ...]") -> "dict[str, tuple[Element, ...]]":
    """The charts of a page by name, each drawn for wide and for narrow windows."""
    from glm_kvplan.show.charts_svg import embedded

    require_charts()
    found = {}
    with style():
        for chart in charts:
            found[chart.name] = tuple(
                embedded(_svg_bytes(figure(seen, words, chart.name, Shape(width))), chart, kind)
                for kind, width in (("wide", WIDE), ("narrow", NARROW))
            )
    return found


def _fonts(words: Words) -> tuple[str, ...]:
    name = chinese_font() if words.language == "zh" else None
    return () if name is None else (name,)


def _title(seen: Picture, chart: "Chart") -> str:
    plan = seen.plan
    text = f"{chart.title}: {plan.model.name}, SGLang {plan.profile.release}, {plan.gpu.name}"
    return text if len(text) <= 110 else text[:109] + "…"


def _svg_bytes(drawn: "Figure") -> bytes:
    out = BytesIO()
    drawn.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return out.getvalue()
