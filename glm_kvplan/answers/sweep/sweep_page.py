"""The page of `kvplan sweep`: a table of the first rows, the reasons of refused points below it."""

from collections.abc import Iterator, Mapping

from glm_kvplan.answers.sweep.sweep_answer import SweepAnswer
from glm_kvplan.engines import sweep_columns
from glm_kvplan.engines.sweep_columns import COMMON, LEADING, SERVED, Column
from glm_kvplan.show import page as pages
from glm_kvplan.show.page import Block, Cell, Line, Page, Row, Section, Table
from glm_kvplan.show.said import Text, say

_TONES: dict[str, pages.Tone] = {"fits": "good", "tight": "careful", "short": "bad"}  # a verdict on what stays free
_STATUS, _REASON = sweep_columns.STATUS.name, sweep_columns.REASON.name


def sweep_page(answer: SweepAnswer) -> Page:
    reasons: dict[str, int] = {}
    for row in answer.rows:
        if row[_REASON] is not None:
            reasons.setdefault(str(row[_REASON]), len(reasons) + 1)
    blocks: tuple[Block, ...] = (
        _table(answer, reasons),
        *(Line(say("[{number}] {reason}", number=number, reason=reason), "bad") for reason, number in reasons.items()),
    )
    below = tuple(Line(text, "muted") for text in _below(answer))
    sections = (Section((*blocks, *below), say("Points"), quiet=True),)
    return Page(answer.title, tuple(_lead(answer)), sections, answer.warnings, answer.notes)


def _lead(answer: SweepAnswer) -> Iterator[Line]:
    if answer.contexts:
        yield Line(
            say(_workload(answer), contexts=answer.contexts, share=f"{100 * (answer.confidence or 0):g}%"), "muted"
        )
    if answer.order:
        name, _, way = answer.order.partition(":")
        template = "ordered by {column}, the most first" if way == "desc" else "ordered by {column}"
        yield Line(say(template, column=name), "muted")


def _workload(answer: SweepAnswer) -> str:
    if answer.confidence is None:
        return "requests of {contexts} tokens each"
    if answer.confidence:
        return "requests of {contexts} tokens: {share} of the time, each request's length drawn by chance"
    return "requests of {contexts} tokens: by the mean, lengths that come by chance need more half of the time"


def _below(answer: SweepAnswer) -> Iterator[Text]:
    yield from answer.advice
    yield say("GPUs and requests at once are the whole deployment's; a worker is one scheduler with pools of its own")
    if answer.more:
        yield say(
            "the first {shown} rows of {points} points; --limit shows more, --format csv all",
            shown=f"{len(answer.rows):,}",
            points=f"{answer.points:,}",
        )


def _table(answer: SweepAnswer, reasons: Mapping[str, int]) -> Table:
    axes = [column for column in answer.columns if column.help == "axis"]
    results = _results(answer)
    columns = (
        *(pages.Column(column.name.replace("_", " "), _kind(column)) for column in axes),
        *(pages.Column(column.title, _kind(column), column.spare) for column in results),
    )
    rows = []
    for row in answer.rows:
        cells = [_axis_cell(row[column.name]) for column in axes]
        if row[_STATUS] == "ok":
            cells += [_cell(row[column.name], column) for column in results]
        else:
            refused = Cell(say("refused [{number}]", number=reasons[str(row[_REASON])]), "bad")
            cells += [refused if column.name == SERVED else Cell("") for column in results]
        rows.append(Row(tuple(cells)))
    return Table(columns, tuple(rows))


def _results(answer: SweepAnswer) -> list[Column]:
    """What a table shows of a point: the deployment first. What all engines say alike is for comparing several."""
    found = [column for column in answer.columns if column.title]
    if len(answer.engines) == 1:
        found = [column for column in found if column not in COMMON[LEADING:]]
    return [column for column in found if not (answer.frontier and column.whose == "worker")]


def _kind(column: Column) -> pages.Kind:
    if column.kind not in ("int", "float"):
        return "text"
    return "decimal" if column.name.endswith("_bytes") else "count"


def _axis_cell(value: object) -> Cell:
    if value is None:
        return Cell("none")
    if isinstance(value, float):
        return Cell(f"{value:.6g}")
    return Cell(value if isinstance(value, int | str) else str(value))


def _cell(value: object, column: Column) -> Cell:
    if isinstance(value, float):
        return Cell(f"{value:,.2f}" if abs(value) < 10 else f"{value:,.1f}")
    if isinstance(value, str):
        return Cell(value.replace("_", " "), _TONES.get(value, ""))
    return Cell(value if isinstance(value, int) else None)
