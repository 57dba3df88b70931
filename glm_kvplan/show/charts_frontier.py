"""Context against concurrency: what fits, and in each region beyond it the limit that binds."""

from itertools import groupby
from math import exp, log
from typing import TYPE_CHECKING

from glm_kvplan.answers.pictures.picture import Picture
from glm_kvplan.answers.pictures.region import FrontierPoint
from glm_kvplan.show.charts_style import (
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
from glm_kvplan.show.words import Words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_REGIONS = {"tokens": ("tokens", "///"), "state slots": ("states", "\\\\\\"), "max_running_requests": ("cap", "---")}
_OTHER = ("loaded", "xx")
_LEAST = 0.7  # below one request, so that a length of which none fits has a place


def draw(seen: Picture, words: Words, shape: Shape) -> "Figure":
    assert seen.frontier is not None
    points = seen.frontier.points
    planned = max(1.0, seen.demand.contexts.mean), seen.demand.concurrency
    most = max(planned[1], *(max(point.requests, point.advised) for point in points)) * 1.8
    keys = [
        Key(words("frontier_line"), "ink", marker="-"),
        Key(words("frontier_advised"), "charged", marker="--"),
        Key(f"{words('frontier_planned')}: {planned[1]:,} × {short_count(planned[0])}", "alarm", marker="*"),
    ]
    height, below = (300.0 if not shape.narrow else 260.0), 36 + legend_height(keys, shape.width - 16)
    made = figure(shape, height + below + 8)
    plot = axes(made, 52, below, shape.width - 52 - 14, height)
    plot.set_xscale("log", base=2)
    plot.set_yscale("log")
    first, last = min(points[0].context, planned[0]), points[-1].context
    plot.set_xlim(first if first < last else last / 2, last)
    plot.set_ylim(_LEAST, most)
    for limit, found in groupby(enumerate(points), key=lambda item: item[1].limit):
        places = [number for number, _ in found]
        region = points[places[0] : places[-1] + 2]  # reaches to where the next one starts
        _region(plot, limit, region, most, words)
    lengths = [point.context for point in points]
    plot.plot(lengths, [max(point.requests, _LEAST) for point in points], color=COLOURS["ink"], linewidth=1.8,
              gid="kv-line")  # fmt: skip
    plot.plot(lengths, [max(point.advised, _LEAST) for point in points], color=COLOURS["charged"], linewidth=1.6,
              linestyle="--", gid="kv-advised")  # fmt: skip
    plot.plot(*planned, marker="*", markersize=14, color=COLOURS["alarm"], markeredgecolor=COLOURS["ink"],
              linestyle="", clip_on=False, zorder=5, gid="kv-planned")  # fmt: skip
    _below(plot, points, words)
    _ticks(plot, points, shape)
    plot.set_xlabel(words("frontier_x"), fontsize=SMALL)
    plot.set_ylabel(words("frontier_y"), fontsize=SMALL)
    legend(made, keys, 8, shape.head + height + 8 + 36, shape.width - 16)
    return made


def _region(plot: "Axes", limit: str, region: tuple[FrontierPoint, ...], most: float, words: Words) -> None:
    colour, hatch = _REGIONS.get(limit, _OTHER)
    lengths = [point.context for point in region]
    floor = [max(point.requests, _LEAST) for point in region]
    plot.fill_between(lengths, floor, most, facecolor="none", edgecolor=COLOURS[colour], hatch=hatch, linewidth=0)
    middle = exp((log(lengths[0]) + log(lengths[-1])) / 2)
    at = min(region, key=lambda point: abs(log(point.context) - log(middle)))
    _label(plot, words.term(limit).strip(), middle, exp((log(max(at.requests, _LEAST)) + log(most)) / 2))


def _below(plot: "Axes", points: tuple[FrontierPoint, ...], words: Words) -> None:
    """The label of the region that fits, where it is highest."""
    middle = points[len(points) // 4]
    if middle.requests > 1:
        _label(plot, words("frontier_fits"), middle.context, exp(log(middle.requests) / 2))


def _label(plot: "Axes", text: str, x: float, y: float) -> None:
    box = {"facecolor": COLOURS["paper"], "edgecolor": "none", "pad": 2.5}
    plot.text(x, y, text, ha="center", va="center", fontsize=TEXT, bbox=box, zorder=4)


def _ticks(plot: "Axes", points: tuple[FrontierPoint, ...], shape: Shape) -> None:
    first, last = (point.context.bit_length() - 1 for point in (points[0], points[-1]))
    step = 2 if shape.narrow and last - first > 5 else 1
    places = [1 << power for power in range(first, last + 1, step)]
    plot.set_xticks(places, [short_count(place) for place in places])
    plot.minorticks_off()
    top = plot.get_ylim()[1]
    marks = [digit * 10**power for power in range(8) for digit in (1, 2, 5) if digit * 10**power <= top]
    plot.set_yticks(marks, [f"{mark:,}" for mark in marks])
    plot.grid(axis="y")
