"""What a chart shows, as plain data: bars that add up, a frontier, a curve, panels of bars. drawing.py draws them.

A `look` names a colour and says what it stands for: the three ledgers (latent, index, states) and the rest. `alt` says
in a sentence what a chart shows.
"""

from typing import Literal, NamedTuple

from glm_kvplan.show.said import Text

Look = Literal["latent", "index", "states", "other", "loaded", "free", "alarm", "cap"]


class Bar(NamedTuple):
    """One bar. `text` is its value as written, of bytes where it is empty; `note` stands under its name."""

    name: Text
    value: int | float
    look: Look
    estimated: bool = False
    mark: str = ""  # behind its name, and the bar is striped; a stack's `marks` say what it means
    text: Text = ""
    note: Text = ""


class Stack(NamedTuple):
    """Bars of bytes that add up to `total`, each starting where the last one ended; the last may be negative.

    `looks` say what each look means, `marks` what each mark of a bar means.
    """

    name: str
    title: Text
    bars: tuple[Bar, ...]
    total: int
    alt: Text = ""
    looks: tuple[tuple[Look, Text], ...] = ()
    marks: tuple[tuple[str, Text], ...] = ()


class Reach(NamedTuple):
    """How many fit at one length, what stops the next one, and how many would fit at best."""

    length: int
    fit: int
    limit: Text
    look: Look
    best: int


class FrontierChart(NamedTuple):
    """What fits by length, on logarithmic scales: a region above the line for each limit, a dashed line for the best,
    a star for what is planned (its length and its number).
    """

    name: str
    title: Text
    reaches: tuple[Reach, ...]
    planned: tuple[float, int]
    alt: Text
    axes: tuple[Text, Text]
    fit_title: Text
    best_title: Text
    planned_title: Text
    below: Text  # what the region under the line is


class Point(NamedTuple):
    """A point of a curve, with what is written beside it."""

    x: int
    y: int
    text: str = ""


class Mark(NamedTuple):
    """A point of its own: a "circle", a "diamond" or a "star"."""

    name: str
    title: Text
    x: int
    y: int
    shape: str


class CurveChart(NamedTuple):
    """A curve with marked points; beyond `corner` in both directions lies what is enough."""

    name: str
    title: Text
    points: tuple[Point, ...]
    marks: tuple[Mark, ...]
    corner: Point
    alt: Text
    axes: tuple[Text, Text]
    enough: Text


class Panel(NamedTuple):
    """Bars on one scale."""

    title: Text
    bars: tuple[Bar, ...]


class PanelChart(NamedTuple):
    """Panels of bars. `aligned`: every panel has the same rows, and they may stand side by side."""

    name: str
    title: Text
    panels: tuple[Panel, ...]
    alt: Text
    aligned: bool = False


Chart = Stack | FrontierChart | CurveChart | PanelChart
