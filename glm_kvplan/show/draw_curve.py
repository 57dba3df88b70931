"""A curve with marked points, and the corner in which there is enough of both."""

from typing import TYPE_CHECKING

from glm_kvplan.show.chart import CurveChart
from glm_kvplan.show.drawing_style import COLOURS, SMALL, TEXT, Key, Shape, axes, figure, legend, legend_height
from glm_kvplan.show.said import Words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARKERS = {"circle": ("o", "paper", 9), "diamond": ("D", "cap", 7), "star": ("*", "free", 14)}


def draw(chart: CurveChart, words: Words, shape: Shape) -> "Figure":
    corner = chart.corner
    keys = [
        Key(words(mark.title), _MARKERS[mark.shape][1], marker=_MARKERS[mark.shape][0], edge="ink")
        for mark in chart.marks
    ]
    height, below = (280.0 if not shape.narrow else 250.0), 36 + legend_height(keys, shape.width - 16)
    made = figure(shape, height + below + 10)
    plot = axes(made, 52, below, shape.width - 52 - 22, height)
    most_x = max(corner.x, *(point.x for point in chart.points), *(mark.x for mark in chart.marks)) * 1.08
    most_y = max(corner.y, *(point.y for point in chart.points), *(mark.y for mark in chart.marks)) * 1.1
    plot.set_xlim(0, most_x)
    plot.set_ylim(0, most_y)
    plot.fill_between([corner.x, most_x], corner.y, most_y, facecolor="none",
                      edgecolor=COLOURS["free"], hatch="|", linewidth=1.0)  # fmt: skip
    box = {"facecolor": COLOURS["paper"], "edgecolor": "none", "pad": 2.5}
    plot.annotate(words(chart.enough), (1, 1), (-8, -8), xycoords="axes fraction", textcoords="offset points",
                  ha="right", va="top", fontsize=TEXT, bbox=box)  # fmt: skip
    plot.plot([point.x for point in chart.points], [point.y for point in chart.points],
              color=COLOURS["ink"], linewidth=1.6, marker=".", markersize=5, gid="kv-line")  # fmt: skip
    for point in chart.points:
        if point.text:
            plot.annotate(point.text, (point.x, point.y), (-5, -5), ha="right", va="top",
                          textcoords="offset points", fontsize=SMALL, color=COLOURS["muted"],
                          bbox={**box, "pad": 1})  # fmt: skip
    for mark in chart.marks:
        marker, colour, side = _MARKERS[mark.shape]
        plot.plot(mark.x, mark.y, marker=marker, markersize=side, linestyle="", zorder=4, clip_on=False,
                  markeredgecolor=COLOURS["ink"], markerfacecolor=COLOURS[colour], gid=f"kv-{mark.name}")  # fmt: skip
    _ticks(plot, shape)
    plot.set_xlabel(words(chart.axes[0]), fontsize=SMALL)
    plot.set_ylabel(words(chart.axes[1]), fontsize=SMALL)
    legend(made, keys, 8, shape.head + height + 10 + 36, shape.width - 16)
    return made


def _ticks(plot: "Axes", shape: Shape) -> None:
    from matplotlib.ticker import FuncFormatter, MaxNLocator

    plot.xaxis.set_major_locator(MaxNLocator(4 if shape.narrow else 8, integer=True))
    plot.yaxis.set_major_locator(MaxNLocator(6, integer=True))
    plot.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    millions = plot.get_ylim()[1] >= 2e6
    plot.yaxis.set_major_formatter(
        FuncFormatter(lambda value, _: f"{value / 1e6:g}M" if millions and value else f"{value:,.0f}")
    )
    plot.grid()
