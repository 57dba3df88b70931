"""How charts look: colours by role, sizes in points, and widths that do not depend on the fonts installed here."""

import atexit
import logging
import os
import shutil
import sys
import tempfile
import unicodedata
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from glm_kvplan.errors import InputError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's palette, told apart by the colour-blind; hatches and labels say the same again. A page replaces
# each colour by its variable of that name, so no two roles may share one. The three ledgers have theirs on every chart.
COLOURS = {
    "ink": "#1f2328",
    "muted": "#59636e",
    "line": "#d1d9e0",
    "paper": "#ffffff",
    "loaded": "#999999",
    "latent": "#0072b2",
    "index": "#56b4e9",
    "states": "#cc79a7",
    "other": "#e69f00",
    "free": "#009e73",
    "alarm": "#d55e00",
    "cap": "#f0e442",
}
STRIPES = "////"  # of a bar with a mark

TEXT, SMALL, ROW = 9.0, 8.0, 19.0  # points
WIDE, NARROW = 640.0, 290.0

CHINESE = (
    "Noto Sans CJK SC",
    "Noto Sans SC",
    "Source Han Sans SC",
    "Noto Sans CJK JP",
    "WenQuanYi Zen Hei",
    "WenQuanYi Micro Hei",
    "Microsoft YaHei",
    "PingFang SC",
    "Hiragino Sans GB",
    "SimHei",
    "Droid Sans Fallback",
    "Arial Unicode MS",
)


class Shape(NamedTuple):
    """The width a chart is drawn for, in points; with a `title` it carries that, for use outside a page."""

    width: float = WIDE
    title: str = ""

    @property
    def narrow(self) -> bool:
        return self.width < 500

    @property
    def head(self) -> float:
        """Points the title takes."""
        return 26.0 if self.title else 0.0


def _import_matplotlib() -> None:
    """Import it with its list of fonts in a temporary folder: an answer writes nothing into the user's home.

    A folder that MPLCONFIGDIR names is used as it is. Raises ImportError.
    """
    if "matplotlib" in sys.modules or "MPLCONFIGDIR" in os.environ:
        import matplotlib
    else:
        folder = tempfile.mkdtemp(prefix="kvplan-matplotlib-")
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        os.environ["MPLCONFIGDIR"] = folder
        try:
            import matplotlib

            for find in (matplotlib.get_configdir, matplotlib.get_cachedir):
                find()  # once; they remember it
        finally:
            del os.environ["MPLCONFIGDIR"]


def require_charts() -> None:
    """Raises InputError where the drawing library is missing."""
    try:
        _import_matplotlib()
    except ImportError:
        message = "charts need matplotlib: pip install matplotlib, or '.[report]' in a clone (--format md does without)"
        raise InputError(message) from None


def chinese_font() -> str | None:
    """A Chinese font installed here, by the drawing library's name for it."""
    from matplotlib import font_manager

    known = {entry.name for entry in font_manager.fontManager.ttflist}
    return next((name for name in CHINESE if name in known), None)


@contextmanager
def style(fonts: tuple[str, ...] = ()) -> Iterator[None]:
    """The library's defaults with our own on top, whatever the user's own settings; nothing depends on the time."""
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    import matplotlib

    settings = {
        "font.family": [*fonts, "DejaVu Sans"],
        "font.size": TEXT,
        "text.parse_math": False,  # a $ in a name is a $
        "text.color": COLOURS["ink"],
        "axes.edgecolor": COLOURS["muted"],
        "axes.labelcolor": COLOURS["ink"],
        "axes.linewidth": 0.8,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.unicode_minus": True,
        "xtick.color": COLOURS["muted"],
        "xtick.labelcolor": COLOURS["ink"],
        "ytick.color": COLOURS["muted"],
        "ytick.labelcolor": COLOURS["ink"],
        "xtick.labelsize": SMALL,
        "ytick.labelsize": SMALL,
        "grid.color": COLOURS["line"],
        "grid.linewidth": 0.6,
        "hatch.linewidth": 0.8,
        "svg.fonttype": "none",  # text stays text
        "svg.hashsalt": "kvplan",
    }
    with warnings.catch_warnings(), matplotlib.rc_context():
        warnings.filterwarnings("ignore", message="Glyph .* missing")
        warnings.filterwarnings("ignore", message=".*Matplotlib currently does not support")
        matplotlib.rcdefaults()
        parameters: Any = matplotlib.rcParams
        parameters.update(settings)
        yield


def figure(shape: Shape, height: float) -> "Figure":
    """A figure of `height` points below its title."""
    from matplotlib.figure import Figure

    whole = height + shape.head
    made = Figure(figsize=(shape.width / 72, whole / 72), facecolor=COLOURS["paper"])
    if shape.title:
        made.text(8 / shape.width, 1 - 16 / whole, shape.title, fontsize=TEXT + 1, weight="bold")
    return made


def axes(made: "Figure", left: float, bottom: float, width: float, height: float) -> "Axes":
    """Axes at a place in points, from the figure's lower left corner."""
    whole_width, whole_height = (inches * 72 for inches in made.get_size_inches())
    place = (left / whole_width, bottom / whole_height, width / whole_width, height / whole_height)
    made_axes = made.add_axes(place)
    made_axes.set_facecolor("none")
    made_axes.set_axisbelow(True)
    return made_axes


def text_width(text: str, size: float = TEXT) -> float:
    """Points a text takes at most, in whatever font it is shown."""
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    return size * (wide + 0.62 * (len(text) - wide))


class Key(NamedTuple):
    """One entry of a legend."""

    label: str
    colour: str
    hatch: str = ""
    marker: str = ""  # a marker or a line ("-", "--") instead of a patch
    edge: str = ""  # of a marker; its own colour where none is named


def legend(made: "Figure", keys: list[Key], left: float, top: float, width: float) -> None:
    """Entries side by side from `left`, `top` points down, wrapped at `width`. See `legend_height`."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Rectangle

    whole_width, whole_height = (inches * 72 for inches in made.get_size_inches())
    for key, x, row in _places(keys, left, width):
        y = whole_height - top - 12 - row * 15
        if key.marker:
            lined = key.marker.startswith("-")
            line: Any = key.marker if lined else ""
            made.add_artist(
                Line2D(
                    [x / whole_width, (x + 6) / whole_width, (x + 12) / whole_width],
                    [(y + 4) / whole_height] * 3,
                    color=COLOURS[key.colour],
                    linestyle=line,
                    linewidth=1.8,
                    marker=None if lined else key.marker,
                    markevery=[1],
                    markersize=8,
                    markerfacecolor=COLOURS[key.colour],
                    markeredgecolor=COLOURS[key.edge or key.colour],
                )
            )
        else:
            made.add_artist(
                Rectangle(
                    (x / whole_width, y / whole_height),
                    12 / whole_width,
                    8 / whole_height,
                    transform=made.transFigure,
                    **fill(key.colour, key.hatch),
                )
            )
        made.text((x + 17) / whole_width, (y + 4) / whole_height, key.label, fontsize=SMALL, va="center")


def legend_height(keys: list[Key], width: float) -> float:
    """Points a legend takes."""
    return 15.0 * (1 + max((row for _, _, row in _places(keys, 0, width)), default=0)) + 4


def _places(keys: list[Key], left: float, width: float) -> Iterator[tuple[Key, float, int]]:
    x, row = 0.0, 0
    for key in keys:
        need = 17 + text_width(key.label, SMALL) + 14
        if x and x + need > width:
            x, row = 0.0, row + 1
        yield key, left + x, row
        x += need


def fill(colour: str, hatch: str = "") -> dict[str, Any]:
    """A filled patch of a role's colour; a hatched one is outlined in it and striped with it on pale ground."""
    if not hatch:
        return {"facecolor": COLOURS[colour], "edgecolor": COLOURS[colour], "linewidth": 0.6}
    return {"facecolor": COLOURS["paper"], "edgecolor": COLOURS[colour], "hatch": hatch, "linewidth": 0.8}


def short_count(value: float) -> str:
    """A length of a context on an axis: `8K`, `1M` (binary, as people type them)."""
    for letter, factor in (("M", 1 << 20), ("K", 1 << 10)):
        if value >= factor:
            return f"{value / factor:.3g}{letter}"
    return f"{value:g}"
