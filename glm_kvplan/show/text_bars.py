"""A stack of bars in a terminal: one line a part, top to bottom, at any width from 40 columns.

A narrow terminal gets the bars on lines of their own: names and figures are never cut.
"""

from functools import reduce

from glm_kvplan.show.chart import Bar, Stack
from glm_kvplan.show.format import bar
from glm_kvplan.show.printable import terminal
from glm_kvplan.show.said import Words, say
from glm_kvplan.show.terminal import Piece, Screen
from glm_kvplan.show.wrapping import pad, width_of, wrap
from glm_kvplan.units import GIB, KIB, MIB

_LEAST_BAR, _MOST_BAR = 12, 100
_INDENT = "  "


def bar_lines(stack: Stack, screen: Screen, words: Words) -> list[list[Piece]]:
    """The parts with bars to scale, none of the lines wider than the screen, and what bars and marks mean."""
    names = [terminal(words(part.name)) + part.mark for part in stack.bars]
    sizes = [bar_size(part) for part in stack.bars]
    title, figure = max(map(width_of, names)), max(map(width_of, sizes))
    left = screen.width - title - figure - 2
    lines: list[list[Piece]] = []
    for part, name, size in zip(stack.bars, names, sizes, strict=True):
        share = part.value / stack.total if stack.total else 0.0
        if left >= _LEAST_BAR:
            drawn = bar(share, min(left, _MOST_BAR), screen.plain).rstrip()
            lines.append([(f"{pad(name, title)} {pad(size, figure, right=True)} ", ""), (drawn, part.look)])
            continue
        narrow = min(screen.width, title + figure + 1)
        if width_of(name) + 1 + width_of(size) > screen.width:
            lines += [[(name, "")], [(_INDENT + size, "")]]
        else:
            lines.append([(f"{name} {pad(size, narrow - width_of(name) - 1, right=True)}", "")])
        drawn = bar(share, narrow - len(_INDENT), screen.plain).rstrip()
        if drawn:
            lines.append([(_INDENT, ""), (drawn, part.look)])
    return lines + [[(line, "muted")] for line in wrap(terminal(legend(stack, words)), screen.width)]


def legend(stack: Stack, words: Words) -> str:
    """What the bars add up to and what the marks mean."""
    parts = [words(say("{size} GiB in all", size=f"{stack.total / GIB:.2f}"))]
    parts += [f"{mark} {words(text)}" for mark, text in stack.marks if any(part.mark == mark for part in stack.bars)]
    if any(part.estimated for part in stack.bars):
        parts.append(words(say("~ estimated")))
    return reduce(lambda one, other: words(say("{one}; {other}", one=one, other=other)), parts)


def bar_size(part: Bar) -> str:
    """Two decimals where the bytes are known, one where they are estimated."""
    nbytes = int(part.value)
    if part.estimated:
        return f"~{nbytes / GIB:.1f} GiB"
    if abs(nbytes) >= GIB // 100:
        return f"{nbytes / GIB:.2f} GiB"
    return f"{nbytes / KIB:.1f} KiB" if abs(nbytes) < MIB // 10 else f"{nbytes / MIB:.1f} MiB"
