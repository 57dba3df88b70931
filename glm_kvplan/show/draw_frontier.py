"""Context against concurrency: what fits, and in each region beyond it the limit that binds."""

from itertools import groupby
from math import exp, log
from typing import TYPE_CHECKING

from glm_kvplan.show.chart import FrontierChart, Reach
from glm_kvplan.show.drawing_style import (
    COLOURS,
    SMALL,
    TEXT,
    Key,
    Shape,
    axes,
    figure,
    legend,
    legend_height,
    short_count,
)
from glm_kvplan.show.said import Words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_HATCHES = {"latent": "///", "states": "\\\\\\", "cap": "---"}
_LEAST = 0.7  # below one request, so that a length of which none fits has a place


def draw(chart: FrontierChart, words: Words, shape: Shape) -> "Figure":
    points, planned = chart.reaches, chart.planned
    most = max(planned[1], *(max(point.fit, point.best) for point in points)) * 1.8
    keys = [
        Key(words(chart.fit_title), "ink", marker="-"),
        Key(words(chart.best_title), "free", marker="--"),
        Key(f"{words(chart.planned_title)}: {planned[1]:,} × {short_count(planned[0])}", "alarm", marker="*"),
    ]
    height, below = (300.0 if not shape.narrow else 260.0), 36 + legend_height(keys, shape.width - 16)
    made = figure(shape, height + below + 8)
    plot = axes(made, 52, below, shape.width - 52 - 14, height)
    plot.set_xscale("log", base=2)
    plot.set_yscale("log")
    first, last = min(points[0].length, planned[0]), points[-1].length
    plot.set_xlim(first if first < last else last / 2, last)
    plot.set_ylim(_LEAST, most)
    for _, found in groupby(enumerate(points), key=lambda item: str(item[1].limit)):
        places = [number for number, _ in found]
        _region(plot, points[places[0] : places[-1] + 2], most, words)  # reaches to where the next one starts
    lengths = [point.length for point in points]
    plot.plot(lengths, [max(point.fit, _LEAST) for point in points], color=COLOURS["ink"], linewidth=1.8,
              gid="kv-line")  # fmt: skip
    plot.plot(lengths, [max(point.best, _LEAST) for point in points], color=COLOURS["free"], linewidth=1.6,
              linestyle="--", gid="kv-advised")  # fmt: skip
    plot.plot(*planned, marker="*", markersize=14, color=COLOURS["alarm"], markeredgecolor=COLOURS["ink"],
              linestyle="", clip_on=False, zorder=5, gid="kv-planned")  # fmt: skip
    _below(plot, points, words(chart.below))
    _ticks(plot, points, shape)
    plot.set_xlabel(words(chart.axes[0]), fontsize=SMALL)
    plot.set_ylabel(words(chart.axes[1]), fontsize=SMALL)
    legend(made, keys, 8, shape.head + height + 8 + 36, shape.width - 16)
    return made


def _region(plot: "Axes", region: tuple[Reach, ...], most: float, words: Words) -> None:
    """The region over some reaches, of whose first the limit binds."""
    colour, hatch = region[0].look, _HATCHES.get(region[0].look, "xx")
    lengths = [point.length for point in region]
    floor = [max(point.fit, _LEAST) for point in region]
    plot.fill_between(lengths, floor, most, facecolor="none", edgecolor=COLOURS[colour], hatch=hatch, linewidth=0)
    middle = exp((log(lengths[0]) + log(lengths[-1])) / 2)
    at = min(region, key=lambda point: abs(log(point.length) - log(middle)))
    _label(plot, words(region[0].limit), middle, exp((log(max(at.fit, _LEAST)) + log(most)) / 2))


def _below(plot: "Axes", points: tuple[Reach, ...], text: str) -> None:
    """The label of the region that fits, where it is highest."""
    middle = points[len(points) // 4]
    if middle.fit > 1:
        _label(plot, text, middle.length, exp(log(middle.fit) / 2))


def _label(plot: "Axes", text: str, x: float, y: float) -> None:
    box = {"facecolor": COLOURS["paper"], "edgecolor": "none", "pad": 2.5}
    plot.text(x, y, text, ha="center", va="center", fontsize=TEXT, bbox=box, zorder=4)


def _ticks(plot: "Axes", points: tuple[Reach, ...], shape: Shape) -> None:
    first, last = (point.length.bit_length() - 1 for point in (points[0], points[-1]))
    step = 2 if shape.narrow and last - first > 5 else 1
    places = [1 << power for power in range(first, last + 1, step)]
    plot.set_xticks(places, [short_count(place) for place in places])
    plot.minorticks_off()
    top = plot.get_ylim()[1]
    marks = [digit * 10**power for power in range(8) for digit in (1, 2, 5) if digit * 10**power <= top]
    plot.set_yticks(marks, [f"{mark:,}" for mark in marks])
    plot.grid(axis="y")
