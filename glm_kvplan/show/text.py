"""A page as text on a terminal or in a file, at its width."""

from typing import TextIO

from glm_kvplan.show.chart import Stack
from glm_kvplan.show.page import Block, Code, Figure, Line, Page, Table
from glm_kvplan.show.printable import terminal
from glm_kvplan.show.said import ENGLISH, Words
from glm_kvplan.show.terminal import Piece, Screen, screen
from glm_kvplan.show.text_bars import bar_lines
from glm_kvplan.show.text_table import table_lines
from glm_kvplan.show.wrapping import wrap


def print_page(page: Page, stream: TextIO | None = None, words: Words = ENGLISH) -> None:
    """Print a page to standard output, or to a stream."""
    out = screen(stream)
    out.write(page_lines(page, out, words))


def page_lines(page: Page, out: Screen, words: Words = ENGLISH) -> list[list[Piece]]:
    """The lines of a page: title and lead, then its sections with an empty line before each, then its warnings."""
    lines = [] if page.quiet else _line(Line(page.title, "strong"), out, words)
    for line in page.lead:
        lines += _line(line, out, words)
    if page.verdict is not None:
        lines += _line(Line(page.verdict.text, page.verdict.tone), out, words)
        for remark in page.verdict.remarks:
            lines += _line(Line(remark), out, words)
    for section in page.sections:
        if not section.blocks:
            continue
        if lines:
            lines.append([])
        if section.title and not section.quiet:
            lines += _line(Line(section.title, section.tone), out, words)
        for block in section.blocks:
            lines += _block(block, out, words)
    if page.warnings:
        lines.append([])
    for warning in page.warnings:
        lines += [[(line, "careful")] for line in wrap(f"! {terminal(words(warning))}", out.width, 2)]
    return lines


def _block(block: Block, out: Screen, words: Words) -> list[list[Piece]]:
    if isinstance(block, Line):
        return _line(block, out, words)
    if isinstance(block, Table):
        return table_lines(block, out, words) if block.rows else []
    if isinstance(block, Figure):
        if isinstance(block.chart, Stack):
            return bar_lines(block.chart, out, words)
        return [] if block.numbers is None else table_lines(block.numbers, out, words)
    return [*_line(Line(block.introduction), out, words), *_code(block)]


def _line(line: Line, out: Screen, words: Words) -> list[list[Piece]]:
    text = terminal(words(line.text))
    return [[(part, line.tone)] for part in wrap(text, out.width)] if text else []


def _code(code: Code) -> list[list[Piece]]:
    """As it stands: what is copied from a terminal must not be folded."""
    return [[(f"  {terminal(line)}", "")] for line in code.text.split("\n")]
