"""A rank's HBM as a picture: one line a segment, top to bottom, at any terminal width from 40 columns."""

from rich.console import Console
from rich.text import Text

from glm_kvplan.report.console import ascii_only
from glm_kvplan.report.format import bar
from glm_kvplan.sizing.memory_map import FREE, MemoryMap, Segment
from glm_kvplan.units import GIB

_LEAST_BAR = 4
_MOST_BAR = 60
_MARK = {"exact": "", "derived": "", "estimated": "~"}


def draw_map(memory: MemoryMap, out: Console) -> None:
    """Print the segments with bars to scale; `~` marks estimated sizes, `*` what the budget does not charge."""
    title = max(len(segment.name) for segment in memory.segments) + 1
    sizes = [_size(segment) for segment in memory.segments]
    figure = max(len(size) for size in sizes)
    if title + figure + 2 + _LEAST_BAR > out.width:  # a narrow terminal keeps the figures and cuts the names
        title = max(8, out.width - figure - 2 - _LEAST_BAR)
    width = min(_MOST_BAR, max(_LEAST_BAR, out.width - title - figure - 2))
    plain = ascii_only()
    for segment, size in zip(memory.segments, sizes, strict=True):
        line = Text(_name(segment)[:title].ljust(title + 1))
        line.append(size.rjust(figure) + " ")
        line.append(bar(segment.nbytes / memory.total, width, plain).rstrip(), style=_style(segment))
        out.print(line, no_wrap=True, crop=True)
    out.print(Text(f"{_gib(memory.total)} in all; * outside the engine's budget; ~ estimated", style="dim"))


def _name(segment: Segment) -> str:
    pool = segment.certainty == "exact"
    return segment.name + ("*" if pool and not segment.charged and segment.name != FREE else "")


def _size(segment: Segment) -> str:
    """Two decimals where the bytes are known, one where they are estimated."""
    estimated = segment.certainty == "estimated"
    if abs(segment.nbytes) < GIB // 100 and not estimated:
        return f"{segment.nbytes / (1 << 20):.1f} MiB"
    return f"{_MARK[segment.certainty]}{segment.nbytes / GIB:.{1 if estimated else 2}f} GiB"


def _gib(count: int) -> str:
    return f"{count / GIB:.2f} GiB"


def _style(segment: Segment) -> str:
    if segment.name == FREE:
        return "green" if segment.nbytes >= 0 else "red"
    if segment.certainty == "estimated":
        return "dim"
    return "cyan" if segment.charged else "yellow"
