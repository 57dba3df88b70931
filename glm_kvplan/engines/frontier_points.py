"""Requests that fit at once at every context length, what stops the next one, and the chart of it, for any engine."""

from collections.abc import Mapping
from typing import NamedTuple

from glm_kvplan.show.chart import FrontierChart, Look, Reach
from glm_kvplan.show.format import whole
from glm_kvplan.show.page import Column, Figure, Table, rows
from glm_kvplan.show.said import Text, say

SHORTEST = 1024
STEPS_PER_DOUBLING = 8


class FrontierPoint(NamedTuple):
    """One context length, with requests over the whole deployment."""

    context: int
    requests: int  # of this length that fit at once as launched
    limit: str  # what stops the next one
    advised: int  # what fits at best


class Frontier(NamedTuple):
    """Points by rising context, up to the longest the server admits."""

    points: tuple[FrontierPoint, ...]

    @property
    def marks(self) -> tuple[FrontierPoint, ...]:
        """The points worth a row in a table: lengths that are powers of two, and the longest."""
        last = self.points[-1]
        return tuple(point for point in self.points if point is last or point.context & (point.context - 1) == 0)


def lengths(longest: int) -> tuple[int, ...]:
    """Context lengths from 1K (from 1 where the longest is no more) in equal ratios, every power of two among them."""
    found: list[int] = []
    power = SHORTEST if longest > SHORTEST else 1
    while power < longest:
        found += [int(power * 2 ** (step / STEPS_PER_DOUBLING)) for step in range(STEPS_PER_DOUBLING)]
        power *= 2
    return (*dict.fromkeys(length for length in found if length < longest), longest)


def frontier_figure(
    frontier: Frontier,
    planned: tuple[float, int],
    looks: Mapping[str, Look],
    *,
    best: Text,
    column: Text,
    folded: Text,
) -> Figure:
    """The chart over its numbers. `planned` is a mean context and requests; `looks` are the colours of limits; `best`
    names the dashed line, `column` its numbers.
    """
    marks = frontier.marks
    points = tuple(
        say("{context}: {requests} ({limit})", context=whole(mark.context), requests=whole(mark.requests),
            limit=say(mark.limit))
        for mark in marks
    )  # fmt: skip
    chart = FrontierChart(
        "frontier",
        say("Context against concurrency"),
        tuple(
            Reach(point.context, point.requests, say(point.limit), looks.get(point.limit, "loaded"), point.advised)
            for point in frontier.points
        ),
        planned,
        say(
            "As launched, requests that fit by context: {points}. Planned: {requests} requests of {context} tokens.",
            points=points,
            requests=whole(planned[1]),
            context=f"{planned[0]:,.0f}",
        ),
        (say("tokens of one request"), say("requests at once")),
        say("as launched"),
        best,
        say("planned"),
        say("fits"),
    )
    columns = (
        Column(say("tokens of a request"), "count"),
        Column(say("fit as launched"), "count"),
        Column(say("bound by")),
        Column(column, "count"),
    )
    table = rows(*((mark.context, mark.requests, say(mark.limit), mark.advised) for mark in marks))
    return Figure(chart, Table(columns, table, folded=folded))
