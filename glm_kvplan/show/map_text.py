"""A rank's memory as a picture: one line a segment, top to bottom, at any terminal width from 40 columns.

A narrow terminal gets the bars on lines of their own: names and figures are never cut.
"""

from typing import NamedTuple

from rich.console import Console
from rich.text import Text

from glm_kvplan.answers.pictures.pool_bars import REST
from glm_kvplan.engines.sglang.sizing.memory_map import FREE, MemoryMap, Segment
from glm_kvplan.show.console import ascii_only
from glm_kvplan.show.format import bar
from glm_kvplan.units import GIB, KIB, MIB

_LEAST_BAR, _MOST_BAR = 12, 100
_INDENT = 2


class MapLine(NamedTuple):
    """One line: plain text, and the bar at its end with its colour."""

    text: str
    bar: str = ""
    style: str = ""

    @property
    def width(self) -> int:
        return len(self.text) + len(self.bar)


def draw_map(memory: MemoryMap, out: Console, unsure: frozenset[str] = frozenset()) -> None:
    """Print the segments with bars to scale; `~` marks estimated sizes, `*` what the budget does not charge.

    `unsure` names pools whose tokens, slots or requests are estimated: exact is what one of them costs, no more.
    """
    for line in map_lines(memory, out.width, ascii_only(), unsure):
        text = Text(line.text)
        text.append(line.bar, style=line.style)
        out.print(text, no_wrap=True, crop=True)
    out.print(Text(legend(memory), style="dim"))


def map_lines(memory: MemoryMap, width: int, plain: bool, unsure: frozenset[str] = frozenset()) -> list[MapLine]:
    """The lines of a map, none of them wider than `width`; `plain` draws in ASCII."""
    names = [_name(segment) for segment in memory.segments]
    sizes = [_size(segment, segment.name in unsure) for segment in memory.segments]
    title, figure = max(map(len, names)), max(map(len, sizes))
    room = width - title - figure - 2
    lines = []
    for segment, name, size in zip(memory.segments, names, sizes, strict=True):
        share, style = segment.nbytes / memory.total if memory.total else 0.0, _style(segment)
        if room >= _LEAST_BAR:
            text = f"{name.ljust(title)} {size.rjust(figure)} "
            lines.append(MapLine(text, bar(share, min(room, _MOST_BAR), plain).rstrip(), style))
            continue
        if len(name) + 1 + len(size) > width:
            lines += [MapLine(name), MapLine(" " * _INDENT + size)]
        else:
            lines.append(MapLine(f"{name} {size.rjust(min(width, title + figure + 1) - len(name) - 1)}"))
        drawn = bar(share, min(width, title + figure + 1) - _INDENT, plain).rstrip()
        if drawn:
            lines.append(MapLine(" " * _INDENT, drawn, style))
    return lines


def legend(memory: MemoryMap) -> str:
    """What the bars add up to and what the marks mean."""
    parts = [f"{memory.total / GIB:.2f} GiB in all"]
    if any(_outside(segment) for segment in memory.segments):
        parts.append("* outside the engine's budget")
    if any(segment.certainty == "estimated" for segment in memory.segments):
        parts.append("~ estimated")
    return "; ".join(parts)


def _name(segment: Segment) -> str:
    return segment.name + "*" * _outside(segment)


def _outside(segment: Segment) -> bool:
    return segment.certainty == "exact" and not segment.charged and segment.name != FREE


def _size(segment: Segment, unsure: bool) -> str:
    """Two decimals where the bytes are known, one where they are estimated."""
    estimated = unsure or segment.certainty == "estimated"
    if abs(segment.nbytes) < GIB // 100 and segment.certainty != "estimated":
        small = abs(segment.nbytes) < MIB // 10
        size = f"{segment.nbytes / KIB:.1f} KiB" if small else f"{segment.nbytes / MIB:.1f} MiB"
        return "~" * unsure + size
    return f"{'~' * estimated}{segment.nbytes / GIB:.{1 if estimated else 2}f} GiB"


def _style(segment: Segment) -> str:
    if segment.name in (FREE, REST):
        return "green" if segment.nbytes >= 0 else "red"
    if segment.certainty == "estimated":
        return "dim"
    return "cyan" if segment.charged else "yellow"
