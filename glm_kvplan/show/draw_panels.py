"""Panels of bars, each on a scale of its own: below one another, or side by side where their rows are the same."""

from typing import TYPE_CHECKING, Any

from glm_kvplan.show.chart import Bar, Panel, PanelChart
from glm_kvplan.show.drawing_style import COLOURS, ROW, SMALL, STRIPES, TEXT, Shape, axes, figure, fill, text_width
from glm_kvplan.show.said import Words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_NOTED_ROW, _TALL_ROW, _HEAD = 30.0, 34.0, 30.0


def draw(chart: PanelChart, words: Words, shape: Shape) -> "Figure":
    """Narrow windows always get the panels below one another, each bar under its name."""
    if chart.aligned and not shape.narrow:
        return _side_by_side(chart, words, shape)
    return _stacked(chart, words, shape)


def _side_by_side(chart: PanelChart, words: Words, shape: Shape) -> "Figure":
    bars = chart.panels[0].bars
    left = max(text_width(words(text), SMALL) for bar in bars for text in (bar.name, bar.note)) + 8
    rows = len(bars) * _NOTED_ROW
    made = figure(shape, rows + _HEAD)
    width = (shape.width - left - 8) / len(chart.panels)
    for number, panel in enumerate(chart.panels):
        plot = axes(made, left + number * width + 8, 6, width - 16, rows)
        _bars(plot, number, panel, words, width - 16, 0.46, 0.5)
        plot.set_title(words(panel.title), fontsize=TEXT, weight="bold", pad=4)
        if number == 0:
            for row, bar in enumerate(bars):
                _name(plot, words(bar.name), row, (-8, 5), "right", "ink")
                _name(plot, words(bar.note), row, (-8, -6), "right", "muted")
    return made


def _stacked(chart: PanelChart, words: Words, shape: Shape) -> "Figure":
    """In narrow windows each bar stands under its name, in wide ones beside it."""
    row = _TALL_ROW if shape.narrow else ROW
    left = 8.0
    if not shape.narrow:
        left = max(text_width(words(bar.name)) for panel in chart.panels for bar in panel.bars) + 10
    heights = [len(panel.bars) * row + _HEAD for panel in chart.panels]
    made = figure(shape, sum(heights))
    top, width = sum(heights), shape.width - left - 8
    for number, (panel, height) in enumerate(zip(chart.panels, heights, strict=True)):
        top -= height
        plot = axes(made, left, top + 4, width, height - _HEAD)
        _bars(plot, number, panel, words, width, *((0.3, 0.18) if shape.narrow else (0.62, 0.5)))
        plot.set_title(words(panel.title), fontsize=TEXT, weight="bold", pad=8 if shape.narrow else 4, loc="left")
        for place, bar in enumerate(panel.bars):
            if shape.narrow:
                _name(plot, f"{words(bar.name)}  {words(bar.note)}".rstrip(), place, (0, 12), "left", "muted")
            else:
                _name(plot, words(bar.name), place, (-6, 0), "right", "ink")
    return made


def _name(plot: "Axes", text: str, row: int, offset: tuple[int, int], side: str, colour: str) -> None:
    plot.annotate(text, (0, row), offset, xycoords=("axes fraction", "data"), textcoords="offset points",
                  ha="right" if side == "right" else "left", va="center", fontsize=SMALL, color=COLOURS[colour],
                  annotation_clip=False)  # fmt: skip


def _bars(plot: "Axes", number: int, panel: Panel, words: Words, width: float, height: float, zero: float) -> None:
    """Bars to the left and their values to the right of a panel `width` points wide; `zero` is half a zero line."""
    values = [bar.value for bar in panel.bars]
    texts = [words(bar.text) for bar in panel.bars]
    least, most = min(0, *values), max(0, *values)
    span = (most - least or 1) * 1.04
    figures = (max(text_width(text, SMALL) for text in texts) + 10) / width
    plot.set_xlim(least - 0.02 * span, least - 0.02 * span + span / (1 - figures))
    plot.set_ylim(len(values) - 0.5, -0.5)
    for row, (bar, text) in enumerate(zip(panel.bars, texts, strict=True)):
        (drawn,) = plot.barh(row, bar.value, height, **_fill(bar))
        drawn.set_gid(f"kv-{number}-{row}")
        plot.annotate(text, (1, row), xycoords=("axes fraction", "data"), va="center", ha="right", fontsize=SMALL)
    rows = range(len(values))
    plot.vlines([0] * len(values), [row - zero for row in rows], [row + zero for row in rows],
                color=COLOURS["muted"], linewidth=0.8)  # fmt: skip
    plot.set_xticks([])
    plot.set_yticks([])
    for side in ("left", "bottom"):
        plot.spines[side].set_visible(False)


def _fill(bar: Bar) -> dict[str, Any]:
    return fill("alarm", STRIPES) if bar.value < 0 else fill(bar.look)
