"""Tokens against state slots of one rank as mamba_full_memory_ratio moves."""

from typing import TYPE_CHECKING

from glm_kvplan.answers.pictures.picture import Picture
from glm_kvplan.show.charts_style import COLOURS, SMALL, TEXT, Key, Shape, axes, figure, legend, legend_height
from glm_kvplan.show.page_charts import marks
from glm_kvplan.show.words import Words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MARKERS = {
    "mark_default": ("o", "ink", False, 9),
    "mark_present": ("D", "states", True, 7),
    "mark_present_fixed": ("D", "states", True, 7),
    "mark_advised": ("*", "charged", True, 14),
}
_NAMED = (0.1, 0.3, 0.5, 0.9, 2.0, 6.0)  # ratios written beside the curve


def draw(seen: Picture, words: Words, shape: Shape) -> "Figure":
    curve = seen.ratio
    assert curve is not None
    marked = marks(seen)
    keys = [
        Key(
            words(key, ratio="" if point.ratio is None else f"{point.ratio:g}"),
            _MARKERS[key][1],
            marker=_MARKERS[key][0],
            filled=_MARKERS[key][2],
        )
        for key, point in marked
    ]
    height, below = (280.0 if not shape.narrow else 250.0), 36 + legend_height(keys, shape.width - 16)
    made = figure(shape, height + below + 10)
    plot = axes(made, 52, below, shape.width - 52 - 22, height)
    most_slots = max(curve.need_slots, *(point.slots for point in (*curve.points, *(p for _, p in marked)))) * 1.08
    most_tokens = max(curve.need_tokens, *(point.tokens for point in (*curve.points, *(p for _, p in marked)))) * 1.1
    plot.set_xlim(0, most_slots)
    plot.set_ylim(0, most_tokens)
    plot.fill_between([curve.need_slots, most_slots], curve.need_tokens, most_tokens, facecolor="none",
                      edgecolor=COLOURS["free"], hatch="|", linewidth=1.0)  # fmt: skip
    box = {"facecolor": COLOURS["paper"], "edgecolor": "none", "pad": 2.5}
    plot.annotate(words("split_enough"), (1, 1), (-8, -8), xycoords="axes fraction", textcoords="offset points",
                  ha="right", va="top", fontsize=TEXT, bbox=box)  # fmt: skip
    plot.plot([point.slots for point in curve.points], [point.tokens for point in curve.points],
              color=COLOURS["ink"], linewidth=1.6, marker=".", markersize=5, gid="kv-line")  # fmt: skip
    for point in curve.points:
        if point.ratio in _NAMED:
            plot.annotate(f"{point.ratio:g}", (point.slots, point.tokens), (-5, -5), ha="right", va="top",
                          textcoords="offset points", fontsize=SMALL, color=COLOURS["muted"],
                          bbox={**box, "pad": 1})  # fmt: skip
    for key, point in marked:
        marker, colour, filled, side = _MARKERS[key]
        plot.plot(point.slots, point.tokens, marker=marker, markersize=side, linestyle="", zorder=4, clip_on=False,
                  color=COLOURS[colour], markeredgecolor=COLOURS["ink"],
                  markerfacecolor=COLOURS[colour if filled else "paper"], gid=f"kv-{key}")  # fmt: skip
    _ticks(plot, shape)
    plot.set_xlabel(words("split_x"), fontsize=SMALL)
    plot.set_ylabel(words("split_y"), fontsize=SMALL)
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
