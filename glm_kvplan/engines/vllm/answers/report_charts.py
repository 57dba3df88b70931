"""The sections of a report with a chart: one GPU's memory, context against requests, and what each knob buys."""

from collections.abc import Callable

from glm_kvplan.engines.frontier_points import frontier_figure
from glm_kvplan.engines.report_parts import idle_lines, moving_panels
from glm_kvplan.engines.vllm.answers.report_answer import ReportAnswer
from glm_kvplan.engines.vllm.answers.solve_page import prices
from glm_kvplan.engines.vllm.card_map import Segment
from glm_kvplan.engines.vllm.priced_moves import PricedMove
from glm_kvplan.show.cells import cell_text
from glm_kvplan.show.chart import Bar, Look, Panel, PanelChart, Stack
from glm_kvplan.show.format import binary, whole
from glm_kvplan.show.page import Cell, Column, Figure, Line, Row, Section, Table
from glm_kvplan.show.said import ENGLISH, Said, Text, say
from glm_kvplan.show.text_bars import bar_size

_NUMBERS = say("The numbers")
_OUTSIDE = "*"
_SMALL = 40  # parts of the whole
_LEFT_OVER = 1000
_LOOKS: tuple[tuple[Look, Said], ...] = (
    ("loaded", say("before the blocks")),
    ("latent", say("latent rows")),
    ("index", say("index keys")),
    ("states", say("states")),
    ("other", say("tails and padding")),
    ("free", say("free")),
    ("alarm", say("over")),
)
_LIMITS: dict[str, Look] = {"blocks": "loaded", "--max-num-seqs": "cap"}  # no length drawn is above the server's


def map_section(answer: ReportAnswer) -> Section:
    card = answer.card
    assert card is not None
    text = say(
        "{total} of one GPU: what is taken before the blocks, and the blocks with {requests} of the wanted requests in "
        "them. Striped parts lie outside the share that vLLM takes.",
        total=binary(card.total_bytes),
        requests=whole(card.requests),
    )
    chart = _stack(card.segments, card.total_bytes)
    columns = (Column(say("part")), Column(say("bytes"), "bytes"), Column(say("size"), "binary"), Column(say("note")))
    found = [_segment_row(segment) for segment in card.segments]
    total = Row((say("total"), card.total_bytes, card.total_bytes, ""), "strong")
    numbers = Table(columns, (*found, total), folded=_NUMBERS)
    return Section((Line(text), Figure(chart, numbers)), chart.title)


def _segment_row(segment: Segment) -> Row:
    size = Cell(segment.nbytes, estimated=segment.estimated)
    return Row((say(segment.name), size, size, segment.note))


def _stack(segments: tuple[Segment, ...], total: int) -> Stack:
    """To scale; padding that would hardly be seen is one bar, before what is free; less than a block is no bar."""
    last = segments[-1]
    if last.look == "free" and last.nbytes * _LEFT_OVER < total:
        segments = (*segments[:-2], segments[-2]._replace(nbytes=segments[-2].nbytes + last.nbytes))
    small = [each for each in segments if each.look == "other" and each.nbytes * _SMALL < total]
    if len(small) < 2:
        small = []
    bars = [_bar(each) for each in segments if each not in small]
    if small:
        name = say("{count} small parts", count=len(small))
        first = next((place for place, bar in enumerate(bars) if bar.look in ("free", "alarm")), len(bars))
        bars[first:first] = [Bar(name, sum(each.nbytes for each in small), "other")]
    parts = tuple(say("{name} {size}", name=bar.name, size=bar_size(bar)) for bar in bars)
    return Stack(
        "map",
        say("One GPU's memory, to scale"),
        tuple(bars),
        total,
        say("Bars to scale: {parts}.", parts=parts),
        tuple((look, text) for look, text in _LOOKS if any(bar.look == look for bar in bars)),
        ((_OUTSIDE, say("outside vLLM's share")),) if any(bar.mark for bar in bars) else (),
    )


def _bar(segment: Segment) -> Bar:
    mark = _OUTSIDE if segment.outside else ""
    return Bar(say(segment.name), segment.nbytes, segment.look, segment.estimated, mark)


def frontier_section(answer: ReportAnswer) -> Section:
    assert answer.frontier is not None
    demand = answer.advised.demand
    text = say(
        "Below the solid line the blocks hold that many requests at once. The region above it names the limit that "
        "binds there; the dashed line is what they would hold with the flags it names."
    )
    lines = [Line(text)]
    if demand.lengths > 1:
        lines.append(Line(say("A mix of lengths is marked at its mean.")))
    beside: Text = say("with {flags}", flags=answer.beside) if answer.beside else say("nothing changed")
    figure = frontier_figure(
        answer.frontier,
        (max(1.0, demand.mean_context), demand.concurrency),
        _LIMITS,
        best=beside,
        column=beside,
        folded=_NUMBERS,
    )
    return Section((*lines, figure), figure.chart.title)


_PANELS: tuple[tuple[Column, Look, Callable[[PricedMove], int | None]], ...] = (
    (Column(say("requests"), "change"), "loaded", lambda price: price.requests),
    (Column(say("longest context"), "change"), "latent", lambda price: price.longest_context),
    (Column(say("fixed a request"), "binary_change"), "states", lambda price: price.fixed_bytes),
)


def prices_section(answer: ReportAnswer) -> tuple[Section, ...]:
    """`solve`'s section of the prices, its table under a chart."""
    found = tuple(prices(answer.start))
    priced = [price for price in answer.start.prices or () if price.failure is None]
    if not priced:
        return found
    (section,) = found
    panels = tuple(
        Panel(column.title, tuple(_price_bar(price, answer, column, look, value(price) or 0) for price in priced))
        for column, look, value in _PANELS
    )
    parts = tuple(
        say(
            "{knob} {moved}: {values}",
            knob=price.knob,
            moved=_moved(price),
            values=tuple(say("{name} {value}", name=panel.title, value=panel.bars[row].text) for panel in panels),
        )
        for row, price in enumerate(priced)
    )
    title = say("What each knob buys")
    drawn, idle = moving_panels(panels)
    chart = PanelChart("prices", title, drawn, say("Change by knob: {parts}.", parts=parts), aligned=True)
    blocks = tuple(
        Figure(chart, block._replace(folded=_NUMBERS)) if isinstance(block, Table) else block
        for block in section.blocks
    )
    return (section._replace(blocks=(Line(section.title), *idle_lines(idle), *blocks), title=title),)


def _price_bar(price: PricedMove, answer: ReportAnswer, column: Column, look: Look, value: int) -> Bar:
    estimated = answer.start.certainty == "estimated" and column.kind == "change"
    text = cell_text(Cell(value, estimated=estimated), column, ENGLISH)
    return Bar(price.knob, value, look, estimated, text=text, note=_moved(price))


def _moved(price: PricedMove) -> Said:
    if not price.gpus:
        return say("{before} → {after}", before=price.before, after=price.after)
    more = say("{count} more GPUs", count=price.gpus)
    return say("{before} → {after} ({remarks})", before=price.before, after=price.after, remarks=more)
