"""A table in a terminal of any width: no number is broken, nothing is cut; where it is too narrow rows become lines."""

from glm_kvplan.show.cells import cell_of, cell_text, numeric
from glm_kvplan.show.format import bar
from glm_kvplan.show.page import Column, Table
from glm_kvplan.show.printable import terminal
from glm_kvplan.show.said import Words
from glm_kvplan.show.terminal import Piece, Screen
from glm_kvplan.show.wrapping import longest_word, pad, width_of, wrap

_BAR = 6  # cells of a share's bar
_WORD = 32  # a word of a text longer than this may be broken
_GAPS = (2, 1)


def table_lines(table: Table, screen: Screen, words: Words) -> list[list[Piece]]:
    """The lines of a table, its title first."""
    lines: list[list[Piece]] = []
    if table.title:
        lines.append([(terminal(words(table.title)), "strong")])
    columns = list(range(len(table.columns)))
    texts = [[_shown(cell, table.columns[n], screen, words) for n, cell in enumerate(row.cells)] for row in table.rows]
    titles = [terminal(words(column.title)) if table.head else "" for column in table.columns]
    left_out: list[str] = []
    while (widths := _widths(table, columns, titles, texts, screen.width)) is None:
        spare = min((n for n in columns if table.columns[n].spare), key=lambda n: table.columns[n].spare, default=None)
        if spare is None:
            return lines + _stacked(table, columns, titles, texts, screen.width) + _note(left_out, screen)
        columns.remove(spare)
        left_out.append(titles[spare])
    gap, found = widths
    if table.head:
        head = [(n, titles[n]) for n in columns]
        lines += _row(head, [""] * len(columns), "strong", table.columns, found, gap)
    for row, cells in zip(table.rows, texts, strict=True):
        if len(cells) == 1 < len(table.columns):
            lines += [[(line, row.tone)] for line in wrap(cells[0], screen.width, 0)]
            continue
        tones = [cell_of(row.cells[n]).tone for n in columns]
        lines += _row([(n, cells[n]) for n in columns], tones, row.tone, table.columns, found, gap)
    return lines + _note(left_out, screen)


def _shown(cell: object, column: Column, screen: Screen, words: Words) -> str:
    text = terminal(cell_text(cell, column, words))  # type: ignore[arg-type]
    value = cell_of(cell).value  # type: ignore[arg-type]
    if column.kind == "share" and isinstance(value, int | float):
        return f"{bar(value, _BAR, screen.plain)}{text:>4}"
    return text


def _widths(
    table: Table, columns: list[int], titles: list[str], texts: list[list[str]], width: int
) -> tuple[int, list[int]] | None:
    """The gap and the widths of the columns; None where even the narrowest would not do."""
    natural, least = [], []
    for n in columns:
        column = table.columns[n]
        cells = [row[n] for row in texts if len(row) == len(table.columns)]
        most = max(map(width_of, (titles[n], *cells)), default=0)
        natural.append(most)
        if numeric(column) or column.kind == "share":
            least.append(max(longest_word(titles[n]), max(map(width_of, cells), default=0)))
        else:
            word = max(map(longest_word, (titles[n], *cells)), default=0)
            least.append(min(most, max(longest_word(titles[n]), min(word, _WORD))))
    for gap in _GAPS:
        inside = width - gap * (len(columns) - 1)
        if sum(natural) <= inside:
            return gap, natural
        if sum(least) <= inside and gap == _GAPS[-1]:
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
    tones: list[str],
    tone: str,
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
    """Each row as a line of its first cell, and under it the others with their titles."""
    lines: list[list[Piece]] = []
    for row, cells in zip(table.rows, texts, strict=True):
        tone = cell_of(row.cells[0]).tone or row.tone
        lines += [[(line, tone)] for line in wrap(cells[0], width, 0)]
        if len(cells) == 1:
            continue
        named = [(f"{titles[n]} {cells[n].strip()}".strip(), row.cells[n]) for n in columns[1:] if cells[n].strip()]
        text = ", ".join(part for part, _ in named)
        lines += [[(line, row.tone)] for line in wrap(f"  {text}", width)] if named else []
    return lines


def _note(left_out: list[str], screen: Screen) -> list[list[Piece]]:
    if not left_out:
        return []
    return [[(line, "muted")] for line in wrap(f"left out for want of width: {', '.join(left_out)}", screen.width)]
