"""The price list as bars: one panel a quantity, one row a knob, zero in the middle where a knob costs and buys."""

from typing import TYPE_CHECKING

from glm_kvplan.answers.pictures.picture import Picture
from glm_kvplan.engines.sglang.sizing.prices import Price
from glm_kvplan.show.charts_style import COLOURS, SMALL, TEXT, Shape, axes, figure, fill, text_width
from glm_kvplan.show.page_charts import PANELS, price_text, price_value
from glm_kvplan.show.words import Words

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_ROW = 30.0


def draw(seen: Picture, words: Words, shape: Shape) -> "Figure":
    return _stacked(seen.prices, words, shape) if shape.narrow else _side_by_side(seen.prices, words, shape)


def _side_by_side(prices: tuple[Price, ...], words: Words, shape: Shape) -> "Figure":
    left = max(text_width(text, SMALL) for price in prices for text in (price.knob, _move(price))) + 8
    rows = len(prices) * _ROW
    made = figure(shape, rows + 30)
    width = (shape.width - left - 8) / len(PANELS)
    for number, panel in enumerate(PANELS):
        plot = axes(made, left + number * width + 8, 6, width - 16, rows)
        _bars(plot, prices, panel, words, shape, width - 16)
        plot.set_title(words(f"panel_{panel}"), fontsize=TEXT, weight="bold", pad=4)
        if number:
            continue
        for row, price in enumerate(prices):
            for text, up, colour in ((price.knob, 5, "ink"), (_move(price), -6, "muted")):
                plot.annotate(text, (0, row), (-8, up), xycoords=("axes fraction", "data"),
                              textcoords="offset points", ha="right", va="center", fontsize=SMALL,
                              color=COLOURS[colour], annotation_clip=False)  # fmt: skip
    return made


def _stacked(prices: tuple[Price, ...], words: Words, shape: Shape) -> "Figure":
    """For narrow windows: the panels below one another, each bar under its knob's name."""
    row = 34.0
    panel_height = len(prices) * row + 30
    made = figure(shape, panel_height * len(PANELS))
    for number, panel in enumerate(PANELS):
        bottom = panel_height * (len(PANELS) - 1 - number) + 4
        plot = axes(made, 8, bottom, shape.width - 16, len(prices) * row)
        _bars(plot, prices, panel, words, shape, shape.width - 16, height=0.3)
        plot.set_title(words(f"panel_{panel}"), fontsize=TEXT, weight="bold", pad=8, loc="left")
        for place, price in enumerate(prices):
            plot.annotate(f"{price.knob}  {_move(price)}", (0, place), (0, 12),
                          xycoords=("axes fraction", "data"), textcoords="offset points", va="center",
                          fontsize=SMALL, color=COLOURS["muted"], annotation_clip=False)  # fmt: skip
    return made


def _bars(
    plot: "Axes", prices: tuple[Price, ...], panel: str, words: Words, shape: Shape, width: float, height: float = 0.46
) -> None:
    """Bars to the left and their values to the right of a panel `width` points wide."""
    values = [price_value(price, panel) for price in prices]
    texts = [price_text(price, panel) for price in prices]
    least, most = min(0, *values), max(0, *values)
    span = (most - least or 1) * 1.04
    figures = (max(text_width(text, SMALL) for text in texts) + 10) / width
    plot.set_xlim(least - 0.02 * span, least - 0.02 * span + span / (1 - figures))
    plot.set_ylim(len(prices) - 0.5, -0.5)
    for row, (price, value, text) in enumerate(zip(prices, values, texts, strict=True)):
        if price.failure is not None:
            text = words("price_refused", kind=price.failure.replace("_", " ")) if panel == PANELS[0] else "–"
        else:
            style = fill("charged") if value >= 0 else fill("alarm", "////")
            (bar,) = plot.barh(row, value, height, **style)
            bar.set_gid(f"kv-{panel}-{row}")
        plot.annotate(text, (1, row), xycoords=("axes fraction", "data"), va="center", ha="right", fontsize=SMALL)
    zero = height / 2 + 0.04 if shape.narrow else 0.5  # narrow: names stand between the bars
    plot.vlines([0] * len(prices), [row - zero for row in range(len(prices))],
                [row + zero for row in range(len(prices))], color=COLOURS["muted"], linewidth=0.8)  # fmt: skip
    plot.set_xticks([])
    plot.set_yticks([])
    for side in ("left", "bottom"):
        plot.spines[side].set_visible(False)


def _move(price: Price) -> str:
    return f"{price.before} → {price.after}"
