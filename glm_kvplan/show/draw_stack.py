"""A stack of bars of bytes: one bar a part, each starting where the last one ended, and all of it in one bar above."""

from typing import TYPE_CHECKING, Literal

from glm_kvplan.show.chart import Bar, Stack
from glm_kvplan.show.drawing_style import (
    COLOURS,
    ROW,
    SMALL,
    STRIPES,
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
from glm_kvplan.show.said import Words, say
from glm_kvplan.show.text_bars import bar_size
from glm_kvplan.units import GIB

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TALL_ROW = 31.0  # a line of text over the bar


def draw(stack: Stack, words: Words, shape: Shape) -> "Figure":
    """In wide windows names stand left of the bars and sizes right of them, in narrow ones both above them."""
    names = [words(say("all of it")), *(words(bar.name) + bar.mark for bar in stack.bars)]
    sizes = [binary(stack.total), *map(bar_size, stack.bars)]
    left = right = 8.0
    if not shape.narrow:
        left = max(text_width(name) for name in names) + 10
        right = max(text_width(text, SMALL) for text in sizes) + 10
    keys = _keys(stack, words)
    rows = len(names) * (_TALL_ROW if shape.narrow else ROW)
    below = 28 + legend_height(keys, shape.width - 16)
    made = figure(shape, rows + below)
    plot = axes(made, left, below, shape.width - left - right, rows)
    thick = 0.36 if shape.narrow else 0.64
    start = 0
    for number, bar in enumerate(stack.bars):
        # the last one may be negative: it then reaches back over what took it
        style = fill(bar.look, _stripes(bar))
        for row, gid in ((number + 1, "bar"), (0, "card")):
            (drawn,) = plot.barh(row, bar.value / GIB, thick, start / GIB, **style)
            drawn.set_gid(f"kv-{gid}-{number}")
        edge = thick / 2 + 0.1
        plot.plot([start / GIB] * 2, [number + 1 - edge, number + 1 + edge], color=COLOURS["muted"], linewidth=0.6)
        start += int(bar.value)
    for row, (name, text) in enumerate(zip(names, sizes, strict=True)):
        _text(plot, name, row, 0, (0, 12) if shape.narrow else (-6, 0), "left" if shape.narrow else "right", TEXT)
        _text(plot, text, row, 1, (0, 12) if shape.narrow else (right - 4, 0), "right", SMALL)
    plot.set_xlim(0, max(stack.total, stack.total - int(stack.bars[-1].value)) / GIB)
    plot.set_ylim(len(stack.bars) + 0.5, -0.62 if shape.narrow else -0.5)
    plot.set_yticks([])
    plot.spines["left"].set_visible(False)
    plot.axvline(stack.total / GIB, color=COLOURS["ink"], linewidth=0.8)
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


def _stripes(bar: Bar) -> str:
    return "xxx" if bar.look == "alarm" else STRIPES if bar.mark else ""


def _keys(stack: Stack, words: Words) -> list[Key]:
    """What colours mean, and stripes."""
    keys = [Key(words(text), look, "xxx" if look == "alarm" else "") for look, text in stack.looks]
    marks = {bar.mark for bar in stack.bars}
    return keys + [Key(f"{mark} {words(text)}", "muted", STRIPES) for mark, text in stack.marks if mark in marks]
