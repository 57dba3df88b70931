"""The page of `kvplan solve`: sizes and what binds them, the memory map, and whether the rest is enough to serve."""

from collections.abc import Iterator
from math import isfinite

from glm_kvplan.engines.mix_words import promised
from glm_kvplan.engines.sglang.answers.host_page import host_sections
from glm_kvplan.engines.sglang.answers.map_chart import map_stack
from glm_kvplan.engines.sglang.answers.memory_verdict import in_memory
from glm_kvplan.engines.sglang.answers.solve_answer import SolveAnswer
from glm_kvplan.engines.sglang.answers.terms import terms
from glm_kvplan.engines.sglang.sizing.binding_limits import Limit
from glm_kvplan.engines.sglang.sizing.prices import Price
from glm_kvplan.memory.budget_words import at_most, bound_said, memory_line
from glm_kvplan.show.format import three_digits, whole
from glm_kvplan.show.page import Cell, Column, Figure, Line, Page, Row, Section, Table, Verdict
from glm_kvplan.show.said import Said, say

SIZES = ("max_total_num_tokens", "max_mamba_cache_size", "max_running_requests")
_UNITS = ("token", "state slot", "request row")  # what tokens, state slots and running requests move


def solve_page(answer: SolveAnswer) -> Page:
    lead = (Line(answer.head.layout, "muted"),)
    sections, verdict = tuple(_sections(answer)), _verdict(answer)
    return Page(
        answer.head.title, lead, sections, answer.warnings, answer.head.notes, terms(answer.head), verdict=verdict
    )


def _verdict(answer: SolveAnswer) -> Verdict:
    """Whether it starts, and how many requests it then holds."""
    memory, served, headroom = answer.memory, answer.served, answer.headroom
    remarks = [memory_line(memory)]
    if memory.upper_bound:
        remarks.append(bound_said(memory))
    if answer.failure is not None:
        reason = say("No: the engine refuses to start: {reason}", reason=answer.failure.message)
        return Verdict(reason, "bad", tuple(remarks))
    assert served is not None and headroom is not None
    if served.mixed:
        remarks.insert(0, promised(served.confidence, served.mean_requests))
    if headroom.verdict == "short":
        return Verdict(say("No: {reason}.", reason=headroom.message), "bad", tuple(remarks))
    if answer.host is not None and not answer.host.holds:
        return Verdict(say("No: the host's memory does not hold the HiCache pools."), "bad", tuple(remarks))
    requests = at_most(whole(served.requests), memory)
    if memory.estimated and not memory.upper_bound and served.low != served.high:
        requests = f"~{three_digits(served.requests)} ({three_digits(served.low)} to {three_digits(served.high)})"
    template = "Yes: {requests} requests of {contexts} tokens fit at once on {gpus}, bound by {limit}"
    if not served.requests:
        template = "It starts, but no request of {contexts} tokens fits on {gpus}, bound by {limit}"
    found = say(template, requests=requests, contexts=served.contexts, gpus=answer.head.cards, limit=say(served.limit))
    careful = headroom.verdict == "tight" or memory.upper_bound or not served.requests
    return in_memory(answer.head, Verdict(found, "careful" if careful else "good", tuple(remarks)))


def _sections(answer: SolveAnswer) -> Iterator[Section]:
    if answer.failure is not None:
        yield Section(tuple(_remedies(answer)), say("Refused"), quiet=True)
        return
    assert answer.memory_map is not None and answer.headroom is not None
    yield Section(tuple(_sizes(answer)), say("What the engine sizes"), quiet=True, spare=8)
    yield Section(tuple(_limits(answer)), say("What binds"), quiet=True, spare=6)
    yield Section(tuple(_split(answer)), say("What a slot costs"), quiet=True, spare=2)
    figure = Figure(map_stack(answer.memory_map, unsure(answer)))
    yield Section((figure,), say("Memory map"), quiet=True, spare=1)
    if answer.headroom.verdict != "short":  # which the verdict says
        fits = answer.headroom.verdict == "fits"
        line = Line(answer.headroom.message, "good" if fits else "careful")
        yield Section((line,), say("Headroom"), quiet=True, spare=7 if fits else 0)
    if answer.host is not None:
        yield from host_sections(answer.host)
    if answer.prices is not None:
        yield _prices(answer.prices, answer.memory.estimated)


def unsure(answer: SolveAnswer) -> frozenset[str]:
    """The segments whose tokens, slots or requests the memory's error moves."""
    assert answer.memory_map is not None
    low, high = answer.span
    moved = set(_UNITS)
    if low is not None and high is not None:
        moved = {unit for least, most, unit in zip(low, high, _UNITS, strict=True) if least != most}
    return frozenset(segment.name for segment in answer.memory_map.segments if segment.unit in moved)


def _sizes(answer: SolveAnswer) -> Iterator[Table | Line]:
    """The engine's integers; with their spans, to three digits, where the memory is estimated."""
    columns = (Column(say("what")), Column(say("value"), "count"), Column(say("within the estimate")))
    found = [
        Row(
            (
                Cell(name, "strong"),
                Cell(value, "strong", moves(answer, place), at_most=answer.memory.upper_bound),
                Cell(span_said(answer, place), "muted"),
            )
        )
        for place, (name, value) in enumerate(zip(SIZES, answer.sizes, strict=True))
    ]
    yield Table(columns, tuple(found), head=False)
    workers = answer.head.deployment["attn_dp_size"]
    if workers != 1:
        yield Line(say("per DP worker; there are {count}", count=workers), "muted")


def moves(answer: SolveAnswer, place: int) -> bool:
    """Whether the memory's error moves this one of the sizes."""
    return len(set(answer.within(place))) > 1


def span_said(answer: SolveAnswer, place: int) -> Said | str:
    """A size within the memory's error; nothing where it is one. An upper bound says why instead."""
    if answer.memory.upper_bound:
        return say("the {uncounted} is not counted", uncounted=say(answer.memory.uncounted))
    least, most = map(end_said, answer.within(place))
    return "" if least == most else say("{least} to {most} within the estimate", least=least, most=most)


def end_said(size: int | None) -> Said | str:
    """A size at an end of the memory's error; None: refused there."""
    return say("refused") if size is None else three_digits(size)


def _limits(answer: SolveAnswer) -> Iterator[Line]:
    assert answer.limits is not None
    estimated = answer.memory.estimated
    yield Line(_limit_line("tokens are set by {name}", answer.limits.tokens, estimated))
    yield Line(_limit_line("running requests are set by {name}", answer.limits.requests, estimated))


def _split(answer: SolveAnswer) -> Iterator[Line]:
    assert answer.limits is not None
    estimated = answer.memory.estimated
    slots = answer.limits.state_slots
    template = "state slots follow {name}" if estimated else "state slots follow {name} ({text})"
    yield Line(say(template, name=say(slots.name), text=slots.text))
    if isfinite(answer.limits.tokens_per_slot):
        tokens = whole(int(answer.limits.tokens_per_slot))
        yield Line(say("one state slot costs as much as {tokens} tokens", tokens=tokens))


def _limit_line(template: str, found: tuple[Limit, ...], estimated: bool) -> Said:
    """Exact numbers only where the memory is: the limit's own, and the next one's."""
    if not estimated:
        template += " ({text})"
    if len(found) == 1:
        return say(template, name=say(found[0].name), text=found[0].text)
    value = f"~{three_digits(found[1].value)}" if estimated else whole(found[1].value)
    template += ", then {next} at {value}"
    return say(template, name=say(found[0].name), text=found[0].text, next=say(found[1].name), value=value)


def _remedies(answer: SolveAnswer) -> Iterator[Line]:
    if not answer.remedies:
        yield Line(say("no single flag lets it start"))
        return
    yield Line(say("each of these alone lets it start:"))
    for remedy in answer.remedies:
        yield Line(f"  {remedy.text}")


def _prices(priced: tuple[Price, ...], estimated: bool) -> Section:
    blocks: list[Line | Table] = []
    if estimated:
        blocks.append(Line(say("~ from the middle of the estimate, to three digits"), "muted"))
    title = say("prices: one more unit of a knob, in the whole deployment; free memory of a GPU")
    return Section((*blocks, price_table(priced, estimated)), title)


def price_table(priced: tuple[Price, ...], estimated: bool) -> Table:
    """A row a knob: what one more unit of it buys and costs."""
    columns = (
        Column(say("knob")),
        Column(say("from → to")),
        Column(say("tokens"), "change"),
        Column(say("slots"), "change"),
        Column(say("requests"), "change"),
        Column(say("free GiB"), "gib_change"),
    )
    return Table(columns, tuple(_price_row(price, estimated) for price in priced))


def _price_row(price: Price, estimated: bool) -> Row:
    moved = Cell(price_move(price), "muted")
    if price.failure is not None:
        return Row((price.knob, moved, Cell(price_refused(price.failure), "bad"), None, None, None))
    estimated = estimated or price.estimated
    deltas = [Cell(each, estimated=estimated) for each in (price.total_tokens, price.total_slots, price.total_requests)]
    return Row((price.knob, moved, *deltas, price.free_bytes))


def price_move(price: Price) -> Said:
    """`4 → 8 (4 more GPUs, its memory estimated)`."""
    remarks = (
        *((say("{count} more GPUs", count=price.gpus),) if price.gpus else ()),
        *((say("its memory estimated"),) if price.estimated else ()),
    )
    template = "{before} → {after} ({remarks})" if remarks else "{before} → {after}"
    return say(template, before=price.before, after=price.after, remarks=remarks)


def price_refused(failure: str) -> Said:
    return say("refused: {kind}", kind=failure.replace("_", " "))
