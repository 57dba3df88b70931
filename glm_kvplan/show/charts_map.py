"""The memory map of a rank: one bar a part, each starting where the last one ended."""

from typing import TYPE_CHECKING, Literal

from glm_kvplan.answers.pictures.picture import Picture
from glm_kvplan.engines.sglang.sizing.memory_map import FREE, Segment
from glm_kvplan.show.charts_style import (
    COLOURS,
    ROW,
    SMALL,
    TEXT,
    Key,
    Shape,
    axes,
    figure,
    fill,
    legend,
    legend_height,
    text_width,
)
from glm_kvplan.show.format import binary
from glm_kvplan.show.page_charts import size
from glm_kvplan.show.words import Words
from glm_kvplan.units import GIB

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TALL_ROW = 31.0  # a line of text over the bar


def draw(seen: Picture, words: Words, shape: Shape) -> "Figure":
    """In wide windows names stand left of the bars and sizes right of them, in narrow ones both above them."""
    memory = seen.boot.map
    assert memory is not None
    segments = memory.segments
    names = [words("map_card"), *(words.term(segment.name) for segment in segments)]
    sizes = [binary(memory.total), *(size(segment) for segment in segments)]
    left = right = 8.0
    if not shape.narrow:
        left = max(text_width(name) for name in names) + 10
        right = max(text_width(text, SMALL) for text in sizes) + 10
    keys = [_key(style, words) for style in dict.fromkeys(_style(segment) for segment in segments)]
    rows = len(names) * (_TALL_ROW if shape.narrow else ROW)
    below = 28 + legend_height(keys, shape.width - 16)
    made = figure(shape, rows + below)
    plot = axes(made, left, below, shape.width - left - right, rows)
    thick = 0.36 if shape.narrow else 0.64
    start = 0
    for number, segment in enumerate(segments):
        # what stays free may be negative: it then reaches back over what took it
        style = fill(*_style(segment))
        for row, gid in ((number + 1, "bar"), (0, "card")):
            (drawn,) = plot.barh(row, segment.nbytes / GIB, thick, start / GIB, **style)
            drawn.set_gid(f"kv-{gid}-{number}")
        edge = thick / 2 + 0.1
        plot.plot([start / GIB] * 2, [number + 1 - edge, number + 1 + edge], color=COLOURS["muted"], linewidth=0.6)
        start += segment.nbytes
    for row, (name, text) in enumerate(zip(names, sizes, strict=True)):
        _text(plot, name, row, 0, (0, 12) if shape.narrow else (-6, 0), "left" if shape.narrow else "right", TEXT)
        _text(plot, text, row, 1, (0, 12) if shape.narrow else (right - 4, 0), "right", SMALL)
    plot.set_xlim(0, max(memory.total, memory.total - memory.free) / GIB)
    plot.set_ylim(len(segments) + 0.5, -0.62 if shape.narrow else -0.5)
    plot.set_yticks([])
    plot.spines["left"].set_visible(False)
    plot.axvline(memory.total / GIB, color=COLOURS["ink"], linewidth=0.8)
    plot.grid(axis="x")
    plot.set_xlabel("GiB", fontsize=SMALL, labelpad=1)
    legend(made, keys, 8, shape.head + rows + 28, shape.width - 16)
    return made


def _text(
    plot: "Axes",
    text: str,
    row: int,
    end: int,
    offset: tuple[float, float],
    side: Literal["left", "right"],
    size: float,
) -> None:
    """A text beside the plot's left (0) or right (1) end in a row."""
    plot.annotate(text, (end, row), offset, xycoords=("axes fraction", "data"), textcoords="offset points", ha=side,
                  va="center", fontsize=size, annotation_clip=False,
                  bbox={"facecolor": COLOURS["paper"], "edgecolor": "none", "pad": 0.5})  # fmt: skip


def _style(segment: Segment) -> tuple[str, str]:
    if segment.name == FREE:
        return ("free", "") if segment.nbytes >= 0 else ("alarm", "xxx")
    if not segment.components:
        return "loaded", ""
    return ("charged", "") if segment.charged else ("uncharged", "////")


def _key(style: tuple[str, str], words: Words) -> Key:
    label = "map_over" if style[0] == "alarm" else f"key_{style[0]}"
    return Key(words(label), *style)
