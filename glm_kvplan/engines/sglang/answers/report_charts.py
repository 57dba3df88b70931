"""The sections of a report with a chart: what it shows in a sentence, and the same numbers in a table."""

from collections.abc import Callable, Iterator

from glm_kvplan.engines.frontier_points import frontier_figure
from glm_kvplan.engines.report_parts import idle_lines, moving_panels
from glm_kvplan.engines.sglang.answers.host_page import host_section
from glm_kvplan.engines.sglang.answers.map_chart import map_stack
from glm_kvplan.engines.sglang.answers.report_answer import ReportAnswer
from glm_kvplan.engines.sglang.answers.solve_page import price_move, price_refused, price_table, unsure
from glm_kvplan.engines.sglang.sizing.memory_map import FREE, Segment
from glm_kvplan.engines.sglang.sizing.prices import Price
from glm_kvplan.engines.sglang.sizing.ratio_curve import RatioPoint
from glm_kvplan.show.cells import cell_text
from glm_kvplan.show.chart import Bar, CurveChart, Look, Mark, Panel, PanelChart, Point
from glm_kvplan.show.format import binary, decimal, whole
from glm_kvplan.show.page import Block, Cell, Column, Figure, Kind, Line, Row, Section, Table, rows
from glm_kvplan.show.said import ENGLISH, Said, Text, say

_NUMBERS = say("The numbers")
_LIMITS: dict[str, Look] = {"tokens": "latent", "state slots": "states", "max_running_requests": "cap"}
_POOLS: dict[str, Look] = {"kv": "latent", "mamba": "states", "indexer": "index", "draft": "latent"}
_NAMED = (0.1, 0.3, 0.5, 0.9, 2.0, 6.0)  # ratios written beside the curve


def map_section(answer: ReportAnswer) -> Section:
    memory = answer.start.memory_map
    assert memory is not None
    moved = unsure(answer.start)
    columns = (
        Column(say("part")),
        Column(say("bytes"), "bytes"),
        Column(say("size"), "binary"),
        Column(say("budget")),
        Column(say("certainty")),
        Column(say("note")),
    )
    found = [_segment_row(segment, moved) for segment in memory.segments]
    total = Row((say("total"), memory.total_bytes, memory.total_bytes, "", "", ""), "strong")
    text = say(
        "{total} of one GPU, from what loading took to what stays free. Striped parts lie outside the engine's budget.",
        total=binary(memory.total_bytes),
    )
    chart = map_stack(memory, moved, fold=True)
    numbers = Table(columns, (*found, total), folded=_NUMBERS)
    return Section((Line(text), Figure(chart, numbers)), chart.title)


def _segment_row(segment: Segment, moved: frozenset[str]) -> Row:
    size = Cell(segment.nbytes, estimated=segment.certainty == "estimated" or segment.name in moved)
    charged = "" if segment.name == FREE else say("charged" if segment.charged else "not charged")
    return Row((say(segment.name), size, size, charged, say(segment.certainty), say(segment.note)))


def frontier_section(answer: ReportAnswer) -> Section:
    assert answer.frontier is not None
    demand = answer.demand
    lines = [
        Line(
            say(
                "Below the solid line the pools as launched hold that many requests at once. The region above it names "
                "the limit that binds there; the dashed line is what another split of the same memory would hold at "
                "each length."
            )
        )
    ]
    if demand.lengths > 1:
        lines.append(Line(say("A mix of lengths is marked at its mean.")))
    figure = frontier_figure(
        answer.frontier,
        (demand.mean_context, demand.concurrency),
        _LIMITS,
        best=say("best split for each length"),
        column=say("best split"),
        folded=_NUMBERS,
    )
    return Section((*lines, figure), figure.chart.title)


class PricePanel:
    """One quantity of the price list: its title, how it is written, its colour, and what it is of a price."""

    def __init__(self, title: Said, kind: Kind, look: Look, value: Callable[[Price], int]) -> None:
        self.title, self.column, self.look, self.value = title, Column(title, kind), look, value

    def bar(self, price: Price, estimated: bool) -> Bar:
        note, value = price_move(price), self.value(price)
        if price.failure is not None:
            refused = price_refused(price.failure) if self is PANELS[0] else "–"
            return Bar(price.knob, 0, self.look, text=refused, note=note)
        estimated = (estimated or price.estimated) and self.column.kind == "change"
        text = cell_text(Cell(value, estimated=estimated), self.column, ENGLISH)
        return Bar(price.knob, value, self.look, estimated, text=text, note=note)


PANELS = (
    PricePanel(say("tokens"), "change", "latent", lambda price: price.total_tokens),
    PricePanel(say("state slots"), "change", "states", lambda price: price.total_slots),
    PricePanel(say("requests"), "change", "loaded", lambda price: price.total_requests),
    PricePanel(say("free GiB"), "gib_change", "free", lambda price: price.free_bytes),
)


def prices_section(answer: ReportAnswer) -> Section:
    title, found = say("What each knob buys"), answer.start.prices
    if not found:
        return Section((Line(say("No knob of this deployment can be moved by one unit.")),), title)
    estimated = answer.start.memory.estimated
    panels = tuple(Panel(each.title, tuple(each.bar(price, estimated) for price in found)) for each in PANELS)
    parts = tuple(
        say(
            "{knob} {moved}: {values}",
            knob=price.knob,
            moved=price_move(price),
            values=tuple(
                say("{name} {value}", name=panel.title, value=panel.bars[row].text)
                for panel in panels
                if panel.bars[row].text != "–"
            ),
        )
        for row, price in enumerate(found)
    )
    drawn, idle = moving_panels(panels)
    chart = PanelChart("prices", title, drawn, say("Change by knob: {parts}.", parts=parts), aligned=True)
    text = say(
        "Each knob moved by one unit and solved again. Tokens, slots and requests are those of the whole deployment, "
        "free memory that of one rank after every pool."
    )
    numbers = price_table(found, estimated)._replace(folded=_NUMBERS)
    return Section((Line(text), *idle_lines(idle), Figure(chart, numbers)), title)


def split_section(answer: ReportAnswer) -> Section:
    curve, title = answer.ratio, say("Tokens against state slots")
    assert curve is not None
    if not curve.moves:
        still = say("The ratio does nothing here: the requests fix the state slots, because the radix cache is off.")
        return Section((Line(still),), title)
    first, last, marks = curve.points[0], curve.points[-1], tuple(_marks(answer))
    alt = say(
        "Along the ratio from {first} to {last} the tokens go from {most_tokens} to {least_tokens} and the state slots "
        "from {least_slots} to {most_slots}. {marks}.",
        first=_ratio(first),
        last=_ratio(last),
        most_tokens=whole(first.tokens),
        least_tokens=whole(last.tokens),
        least_slots=whole(first.slots),
        most_slots=whole(last.slots),
        marks=tuple(
            say("{name}: {tokens} tokens, {slots} slots", name=mark.title, tokens=whole(mark.y), slots=whole(mark.x))
            for mark, _ in marks
        ),
    )
    chart = CurveChart(
        "split",
        title,
        tuple(Point(each.slots, each.tokens, _ratio(each) if each.ratio in _NAMED else "") for each in curve.points),
        tuple(mark for mark, _ in marks),
        Point(curve.need_slots, curve.need_tokens),
        alt,
        (say("state slots"), say("tokens")),
        say("enough"),
    )
    columns = (
        Column("mamba_full_memory_ratio"),
        Column(say("state slots"), "count"),
        Column(say("tokens"), "count"),
        Column("max_running_requests", "count"),
    )
    named = [(_ratio(each), each) for each in curve.points] + [(mark.title, each) for mark, each in marks]
    found: list[tuple[Text | int, ...]] = [(name, each.slots, each.tokens, each.requests) for name, each in named]
    found.append((say("needed"), curve.need_slots, curve.need_tokens, ""))
    text = say(
        "One rank's memory is dealt out between tokens and state slots by mamba_full_memory_ratio. The workload needs "
        "{slots} slots and {tokens} tokens on the busiest worker: the shaded corner.",
        slots=whole(curve.need_slots),
        tokens=whole(curve.need_tokens),
    )
    numbers = Table(columns, rows(*found), folded=_NUMBERS)
    return Section((Line(text), Figure(chart, numbers)), title)


def _marks(answer: ReportAnswer) -> Iterator[tuple[Mark, RatioPoint]]:
    """The engine's default, this plan and the advised split."""
    assert answer.ratio is not None
    default, present, advised = answer.ratio.default, answer.ratio.present, answer.ratio.advised
    if default is not None:
        title = say("engine's default, {ratio}", ratio=_ratio(default))
        yield Mark("default", title, default.slots, default.tokens, "circle"), default
    title = say("this plan, {ratio}", ratio=_ratio(present))
    if present.ratio is None:
        title = say("this plan, slots by flag")
    yield Mark("present", title, present.slots, present.tokens, "diamond"), present
    if advised is not None:
        yield Mark("advised", say("advised"), advised.slots, advised.tokens, "star"), advised


def _ratio(point: RatioPoint) -> str:
    return "" if point.ratio is None else f"{point.ratio:g}"


def host_pools_section(answer: ReportAnswer) -> Section | None:
    """`solve`'s section of the host pools, its table under a chart."""
    host = answer.start.host
    if host is None:
        return None
    section = host_section(host)
    pools, covered = host.fullest.pools, host.coverage
    total = max(host.bytes_by_host)
    everywhere = [_gb(say("pools of {ranks} ranks", ranks=host.ranks_on_a_host), total, "loaded")]
    if host.fit is not None:
        everywhere.append(_gb(say("available"), host.fit.available_bytes, "free"))
    prefixes: tuple[tuple[Said, int, Look], ...] = (
        (say("KV pool"), covered.kv_prefixes, "latent"),
        (say("state pool"), covered.state_prefixes, "states"),
        (say("usable"), covered.usable_prefixes, "free"),
    )
    panels = (
        Panel(say("GB of one rank"), tuple(_gb(each.name.upper(), each.nbytes, _POOLS[each.name]) for each in pools)),
        Panel(say("GB of one host"), tuple(everywhere)),
        Panel(say("cached prefixes"), tuple(Bar(name, each, look, text=whole(each)) for name, each, look in prefixes)),
    )
    alt = say(
        "One rank: {parts}. A host: {total}. Of the cached prefixes the KV pool holds {kv}, the state pool {states}; a "
        "hit needs both, so {usable} are usable.",
        parts=tuple(f"{each.name.upper()} {decimal(each.nbytes)}" for each in pools),
        total=decimal(total),
        kv=whole(covered.kv_prefixes),
        states=whole(covered.state_prefixes),
        usable=whole(covered.usable_prefixes),
    )
    chart = PanelChart("host", section.title, panels, alt)
    blocks: list[Block] = [block for block in section.blocks if isinstance(block, Line)]
    blocks += [Figure(chart, each._replace(folded=_NUMBERS)) for each in section.blocks if isinstance(each, Table)]
    return section._replace(blocks=tuple(blocks))


def _gb(name: Text, nbytes: int, look: Look) -> Bar:
    return Bar(name, nbytes, look, text=cell_text(nbytes, Column(kind="gb"), ENGLISH))
