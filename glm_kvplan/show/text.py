"""A page as text on a terminal or in a file, at its width: all of it, or what one screen holds."""

from typing import TextIO

from glm_kvplan.show.chart import Stack
from glm_kvplan.show.page import Block, Code, Figure, Line, Page, Section, Table
from glm_kvplan.show.printable import terminal
from glm_kvplan.show.said import ENGLISH, Words, say
from glm_kvplan.show.terminal import Piece, Screen, screen
from glm_kvplan.show.text_bars import bar_lines
from glm_kvplan.show.text_table import table_lines
from glm_kvplan.show.wrapping import width_of, wrap

Lines = list[list[Piece]]


def print_page(page: Page, stream: TextIO | None = None, words: Words = ENGLISH, *, brief: bool = False) -> None:
    """Print a page to standard output, or to a stream; `brief`: as much of it as one screen holds."""
    out = screen(stream)
    out.write(brief_lines(page, out, words) if brief else page_lines(page, out, words))


def page_lines(page: Page, out: Screen, words: Words = ENGLISH) -> Lines:
    """The lines of a page: title, lead and verdict, its sections with an empty line before each, its warnings."""
    return _joined(
        _head(page, out, words), *(_section(each, out, words) for each in page.sections), _foot(page, out, words)
    )


def brief_lines(page: Page, out: Screen, words: Words = ENGLISH) -> Lines:
    """The same without the sections that a screen has no place for, which the last line names.

    Where that is not enough, warnings of several lines end with the first, and then words are not explained.
    """
    head, foot = _head(page, out, words), _foot(page, out, words)
    shown = {n: lines for n, each in enumerate(page.sections) if (lines := _section(each, out, words))}
    spare = sorted((n for n in shown if page.sections[n].spare), key=lambda n: page.sections[n].spare)
    left_out: list[int] = []
    more: Lines = []
    while spare and len(_joined(head, *shown.values(), foot + more)) >= out.height:
        del shown[spare[0]]
        left_out = sorted([*left_out, spare.pop(0)])
        names = tuple(page.sections[n].title for n in left_out)
        more = _line(Line(say("--all shows more: {names}", names=names), "muted"), out, words)
    for short in (_foot(page, out, words, brief=True), _foot(page._replace(footer=()), out, words, brief=True)):
        if short != foot and len(_joined(head, *shown.values(), foot + more)) >= out.height:
            foot = short
            more = more or _line(Line(say("--all shows the warnings whole"), "muted"), out, words)
    return _joined(head, *shown.values(), foot + more)


def _joined(*parts: Lines) -> Lines:
    """The parts that say something, an empty line between them."""
    found: Lines = []
    for lines in filter(None, parts):
        found += [*([[]] if found else []), *lines]
    return found


def _head(page: Page, out: Screen, words: Words) -> Lines:
    lines = [] if page.quiet else _line(Line(page.title, "strong"), out, words)
    for line in page.lead:
        lines += _line(line, out, words)
    if page.verdict is not None:
        lines += _line(Line(page.verdict.text, page.verdict.tone), out, words)
        for remark in page.verdict.remarks:
            lines += _line(Line(remark), out, words)
    return lines


def _section(section: Section, out: Screen, words: Words) -> Lines:
    lines = [] if section.quiet or not section.blocks else _line(Line(section.title, section.tone), out, words)
    for block in section.blocks:
        lines += _block(block, out, words)
    return lines


def _foot(page: Page, out: Screen, words: Words, *, brief: bool = False) -> Lines:
    """The warnings, each no longer than a line if `brief`, and what stands at the end of a page."""
    lines: Lines = []
    for warning in page.warnings:
        first, *others = wrap(f"! {terminal(words(warning))}", out.width, 2)
        if brief and others:
            first, others = _ended(first, out.width), []
        lines += [[(line, "careful")] for line in (first, *others)]
    for text in page.footer:
        lines += _line(Line(text, "muted"), out, words)
    return lines


def _ended(line: str, width: int) -> str:
    """The first line of a text that goes on."""
    while width_of(f"{line}...") > width:
        line = line.rpartition(" ")[0] or line[:-1]
    return f"{line}..."


def _block(block: Block, out: Screen, words: Words) -> Lines:
    if isinstance(block, Line):
        return _line(block, out, words)
    if isinstance(block, Table):
        return table_lines(block, out, words) if block.rows else []
    if isinstance(block, Figure):
        if isinstance(block.chart, Stack):
            return bar_lines(block.chart, out, words)
        return [] if block.numbers is None else table_lines(block.numbers, out, words)
    return [*_line(Line(block.introduction), out, words), *_code(block)]


def _line(line: Line, out: Screen, words: Words) -> Lines:
    text = terminal(words(line.text))
    return [[(part, line.tone)] for part in wrap(text, out.width)] if text else []


def _code(code: Code) -> Lines:
    """As it stands: what is copied from a terminal must not be folded."""
    return [[(f"  {terminal(line)}", "")] for line in code.text.split("\n")]
