"""A table in a terminal of any width: no number is broken, nothing is cut; where it is too narrow rows become lines."""

from typing import Final

from glm_kvplan.show.cells import cell_of, cell_text, numeric
from glm_kvplan.show.format import bar
from glm_kvplan.show.page import Column, Table, Tone
from glm_kvplan.show.printable import terminal
from glm_kvplan.show.said import Words
from glm_kvplan.show.terminal import Piece, Screen
from glm_kvplan.show.wrapping import longest_word, pad, width_of, wrap

_BAR = 5  # cells of a share's bar
# A word longer than this may be broken, of a text and of code (names of flags and tensors); step by step, before rows
# become lines.
_WORDS = ((32, 32), (20, 32), (20, 20))
_GAPS = (2, 1)
_SLACK = 16  # cells a table must have to spare where it folds for the wider gap
_NARROW = 60  # cells of a screen below which no column goes: rows become lines
_SENTENCE = 20  # cells of a last column of sentences below which they stand under their rows
_NOTE: Final = "note"
_INDENT = "    "


def table_lines(table: Table, screen: Screen, words: Words) -> list[list[Piece]]:
    """The lines of a table, its title first."""
    lines: list[list[Piece]] = []
    if table.title:
        lines += [[(line, "strong")] for line in wrap(terminal(words(table.title)), screen.width)]
    columns = [n for n, column in enumerate(table.columns) if column.kind != _NOTE]
    texts = [[_shown(cell, table.columns[n], screen, words) for n, cell in enumerate(row.cells)] for row in table.rows]
    titles = [terminal(words(column.title)) if table.head else "" for column in table.columns]
    left_out: list[str] = []
    widths = _widths(table, columns, titles, texts, screen.width)
    while widths is None and screen.width >= _NARROW and (spare := _spare(table, columns)) is not None:
        columns.remove(spare)
        left_out.append(titles[spare])
        widths = _widths(table, columns, titles, texts, screen.width)
    for longest in _WORDS[1:]:
        widths = widths or _widths(table, columns, titles, texts, screen.width, longest)
    if widths is not None and screen.width >= _NARROW and _squeezed(table, columns, texts, widths[1][-1]):
        last = table.columns[-1]._replace(kind=_NOTE)
        return table_lines(table._replace(columns=(*table.columns[:-1], last)), screen, words)
    if widths is None:
        return lines + _stacked(table, columns, titles, texts, screen.width) + _note(left_out, screen)
    gap, found = widths
    if table.head:
        head = [(n, titles[n]) for n in columns]
        plain: list[Tone] = [""] * len(columns)
        lines += _row(head, plain, "strong", table.columns, found, gap)
    for row, cells in zip(table.rows, texts, strict=True):
        if len(cells) == 1 < len(table.columns):
            lines += [[(line, row.tone)] for line in wrap(cells[0], screen.width, 0)]
            continue
        tones = [cell_of(row.cells[n]).tone for n in columns]
        lines += _row([(n, cells[n]) for n in columns], tones, row.tone, table.columns, found, gap)
        lines += _notes(table, cells, screen.width)
    return lines + _note(left_out, screen)


def _squeezed(table: Table, columns: list[int], texts: list[list[str]], width: int) -> bool:
    """The last column is of sentences, and so narrow that one would take more than three lines."""
    n = columns[-1]
    if n + 1 != len(table.columns) or n == 0 or table.columns[n].kind != "text" or width >= _SENTENCE:
        return False
    return any(width_of(row[n]) > 3 * width for row in texts if len(row) > n)


def _spare(table: Table, columns: list[int]) -> int | None:
    """The column that goes first where there is no place for all."""
    spare = (n for n in columns if table.columns[n].spare)
    return min(spare, key=lambda n: table.columns[n].spare, default=None)


def _shown(cell: object, column: Column, screen: Screen, words: Words) -> str:
    text = terminal(cell_text(cell, column, words))  # type: ignore[arg-type]
    value = cell_of(cell).value  # type: ignore[arg-type]
    if column.kind == "share" and isinstance(value, int | float):
        return f"{bar(value, _BAR, screen.plain)}{text:>5}"
    return text


def _widths(
    table: Table,
    columns: list[int],
    titles: list[str],
    texts: list[list[str]],
    width: int,
    longest: tuple[int, int] = _WORDS[0],
) -> tuple[int, list[int]] | None:
    """The gap and the widths of the columns; None where even the narrowest would not do."""
    natural, least = [], []
    for n in columns:
        column = table.columns[n]
        cells = [row[n] for row in texts if len(row) == len(table.columns)]
        most = max(map(width_of, (titles[n], *cells)), default=0)
        natural.append(most)
        if column.kind in ("share", "fixed"):
            least.append(most)
        elif numeric(column):
            least.append(max(longest_word(titles[n]), max(map(width_of, cells), default=0)))
        else:
            word = max(map(longest_word, (titles[n], *cells)), default=0)
            least.append(min(most, max(longest_word(titles[n]), min(word, longest[column.kind == "code"]))))
    for gap in _GAPS:
        inside = width - gap * (len(columns) - 1)
        if sum(natural) <= inside:
            return gap, natural
        if sum(least) + (gap > _GAPS[-1]) * _SLACK <= inside:
            return gap, _shared(natural, least, inside)
    return None


def _shared(natural: list[int], least: list[int], inside: int) -> list[int]:
    """Widths between the least and the natural ones: the widest columns give way first."""
    low, high = 0, max(natural)
    while low < high:
        most = (low + high + 1) // 2
        if sum(max(a, min(b, most)) for a, b in zip(least, natural, strict=True)) <= inside:
            low = most
        else:
            high = most - 1
    found = [max(a, min(b, low)) for a, b in zip(least, natural, strict=True)]
    for n, most in enumerate(natural):
        found[n] += max(0, min(inside - sum(found), most - found[n]))
    return found


def _row(
    cells: list[tuple[int, str]],
    tones: list[Tone],
    tone: Tone,
    columns: tuple[Column, ...],
    widths: list[int],
    gap: int,
) -> list[list[Piece]]:
    parts = [
        wrap(text, width, 1 if text[:1] != " " and not numeric(columns[n]) else None) or [""]
        for (n, text), width in zip(cells, widths, strict=True)
    ]
    lines: list[list[Piece]] = []
    for number in range(max(map(len, parts))):
        pieces: list[Piece] = []
        for place, ((n, _), part, width) in enumerate(zip(cells, parts, widths, strict=True)):
            text = part[number] if number < len(part) else ""
            pieces.append((pad(text, width, right=numeric(columns[n])), tones[place] or tone))
            pieces.append((" " * gap, ""))
        lines.append(pieces[:-1])
    return lines


def _stacked(
    table: Table, columns: list[int], titles: list[str], texts: list[list[str]], width: int
) -> list[list[Piece]]:
    """Each row as a line of its first cell, and under it the others, each after its title."""
    lines: list[list[Piece]] = []
    for row, cells in zip(table.rows, texts, strict=True):
        tone = cell_of(row.cells[0]).tone or row.tone
        if len(cells) == 1:
            lines += [[(line, tone)] for line in wrap(cells[0], width, 0)]
            continue
        lines += [
            [(line, tone)] for line in wrap(f"{titles[columns[0]]} {cells[columns[0]].strip()}".strip(), width, 0)
        ]
        named = [(f"{titles[n]} {cells[n].strip()}".strip(), row.cells[n]) for n in columns[1:] if cells[n].strip()]
        text = ", ".join(part for part, _ in named)
        lines += [[(line, row.tone)] for line in wrap(f"  {text}", width)] if named else []
        lines += _notes(table, cells, width)
    return lines


def _notes(table: Table, cells: list[str], width: int) -> list[list[Piece]]:
    """What a row's columns of notes say, under it."""
    first, *others = [cells[n] for n, column in enumerate(table.columns) if column.kind == _NOTE and cells[n]] or [""]
    said = " ".join([first, *(f"({text})" for text in others)])
    return [[(line, "muted")] for line in wrap(f"{_INDENT}{said}", width)] if said else []


def _note(left_out: list[str], screen: Screen) -> list[list[Piece]]:
    if not left_out:
        return []
    return [[(line, "muted")] for line in wrap(f"left out for want of width: {', '.join(left_out)}", screen.width)]
