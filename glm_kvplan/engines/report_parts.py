"""Parts of a report that are the same for every engine: flags with their reasons, how the page was made, its foot."""

from collections.abc import Sequence
from typing import NamedTuple

from glm_kvplan.engines.answer_head import Head
from glm_kvplan.engines.flag import Choice
from glm_kvplan.show.chart import Bar, Panel
from glm_kvplan.show.format import shown
from glm_kvplan.show.page import Code, Column, Line, Section, Table, rows
from glm_kvplan.show.said import Text, say

_SEEN = 200  # a bar shorter than this part of the longest is not seen


class Made(NamedTuple):
    """How a report came to be: the command as typed, and the day (`2026-11-29`)."""

    command: str
    day: str


def gpus_said(head: Head) -> str:
    """`8 × H200`: those of the whole deployment."""
    return f"{head.gpus} × {head.gpu.name}"


def flags_section(choices: tuple[Choice, ...]) -> Section:
    """Every resolved flag with its reason and source."""
    found = rows(
        *(
            (choice.flag, shown(choice.value), say("given" if choice.given else "engine"), choice.reason, choice.source)
            for choice in choices
        )
    )
    columns = tuple(map(Column, (say("flag"), say("value"), say("from"), say("reason"), say("source"))))
    table = Table(columns, found, folded=say("{count} flags", count=len(found)))
    return Section((table,), say("The resolved flags, with reasons"))


def moving_panels(panels: Sequence[Panel]) -> tuple[tuple[Panel, ...], tuple[Bar, ...]]:
    """Aligned panels without those in which nothing moves and without the rows that would nowhere be seen: these rows'
    bars beside them. What is refused moves nothing and stays.
    """
    most = [max((abs(bar.value) for bar in panel.bars), default=0) for panel in panels]
    lines = list(zip(*(panel.bars for panel in panels), strict=True))
    seen = [
        any(abs(bar.value) * _SEEN > top for bar, top in zip(line, most, strict=True))
        or not any(each.value for each in line)
        for line in lines
    ]
    if not any(seen):
        return tuple(panels), ()
    shown = (
        panel._replace(bars=tuple(bar for bar, kept in zip(panel.bars, seen, strict=True) if kept))
        for panel, top in zip(panels, most, strict=True)
        if top
    )
    return tuple(shown), tuple(line[0] for line, kept in zip(lines, seen, strict=True) if not kept)


def idle_lines(bars: Sequence[Bar]) -> tuple[Line, ...]:
    """The rows that are not drawn, in a line."""
    if not bars:
        return ()
    knobs = tuple(say("{knob} {moved}", knob=bar.name, moved=bar.note) for bar in bars)
    return (Line(say("Too little to draw: {knobs}.", knobs=knobs), "muted"),)


def made_section(head: Head, made: Made) -> Section:
    intro = say("Made with kvplan {version} on {day} by:", version=head.kvplan, day=made.day)
    return Section((Code(made.command, intro),), say("How this page was made"))


def footer(head: Head) -> tuple[Text, ...]:
    return (
        say(
            "GB are 10⁹ bytes, GiB are 2³⁰ bytes. ~ marks what is estimated; everything else follows from the "
            "engine's own formulas, whole bytes."
        ),
        f"kvplan {head.kvplan}",
    )
