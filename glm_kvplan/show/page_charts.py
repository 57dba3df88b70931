"""The sections with a chart: what it shows in a sentence, and the same numbers in a table."""

from glm_kvplan.answers.pictures.picture import Picture
from glm_kvplan.answers.pictures.ratio_curve import RatioPoint
from glm_kvplan.answers.pictures.region import FrontierPoint
from glm_kvplan.engines.sglang.sizing.memory_map import FREE, Segment
from glm_kvplan.engines.sglang.sizing.prices import Price
from glm_kvplan.show.format import binary, decimal, free_change, gib, whole
from glm_kvplan.show.report_page import Cell, Chart, Section, Table
from glm_kvplan.show.words import Words


def memory_map(seen: Picture, words: Words) -> Section:
    memory = seen.boot.map
    assert memory is not None
    parts = words("comma").join(f"{words.term(segment.name)} {size(segment)}" for segment in memory.segments)
    rows: list[tuple[Cell, ...]] = [
        (
            Cell(words.term(segment.name)),
            _bytes(segment),
            Cell(size(segment)),
            Cell("" if segment.name == FREE else words("charged" if segment.charged else "not_charged")),
            Cell(words.term(segment.certainty)),
            Cell(words.term(segment.note)),
        )
        for segment in memory.segments
    ]
    rows.append((Cell(words("total")), Cell(whole(memory.total), memory.total), Cell(binary(memory.total)), *_blank(3)))
    header = _heads(words, "part", "bytes", "size", "budget", "certainty", "note")
    title = words("section_map")
    return Section(
        "map",
        title,
        (words("map_text", total=binary(memory.total)),),
        Chart("map", title, words("map_alt", parts=parts)),
        (Table(header, tuple(rows), frozenset((1, 2))),),
        folded=True,
        summary=words("data"),
    )


def frontier(seen: Picture, words: Words) -> Section:
    assert seen.frontier is not None
    demand = seen.demand
    marks = seen.frontier.marks
    points = words("comma").join(
        f"{whole(mark.context)}: {whole(mark.requests)} ({words.term(mark.limit)})" for mark in marks
    )
    planned = {"requests": whole(demand.concurrency), "context": f"{demand.contexts.mean:,.0f}"}
    sentences = [words("frontier_text")]
    if len(demand.contexts.lengths) > 1:
        sentences.append(words("frontier_mean"))
    title = words("section_frontier")
    rows = tuple(_frontier_row(mark, words) for mark in marks)
    return Section(
        "frontier",
        title,
        tuple(sentences),
        Chart("frontier", title, words("frontier_alt", points=points, **planned)),
        (Table(_heads(words, "context", "requests", "limit", "advised"), rows, frozenset((0, 1, 3))),),
        folded=True,
        summary=words("data"),
    )


def _frontier_row(mark: FrontierPoint, words: Words) -> tuple[Cell, ...]:
    limit = Cell(words.term(mark.limit))
    return whole_cell(mark.context), whole_cell(mark.requests), limit, whole_cell(mark.advised)


def price_list(seen: Picture, words: Words) -> Section:
    title = words("section_prices")
    if not seen.prices:
        return Section("prices", title, (words("prices_none"),))
    parts = "; ".join(
        f"{price.knob} {price.before} → {price.after}: {', '.join(_price_parts(price, words))}" for price in seen.prices
    )
    header = (*_heads(words, "knob", "move"), *(words(f"panel_{name}") for name in PANELS))
    return Section(
        "prices",
        title,
        (words("prices_text"),),
        Chart("prices", title, words("prices_alt", parts=parts)),
        (Table(header, tuple(_price_row(price, words) for price in seen.prices), frozenset((2, 3, 4, 5))),),
        folded=True,
        summary=words("data"),
    )


PANELS = ("tokens", "slots", "requests", "free")


def price_value(price: Price, panel: str) -> int:
    """The price on one panel; bytes on the panel of free memory."""
    values = {
        "tokens": price.tokens,
        "slots": price.slots,
        "requests": price.total_requests,
        "free": price.free_bytes,
    }
    return values[panel]


def price_text(price: Price, panel: str) -> str:
    """`+137,408`, `0`, or GiB (`-1.79`)."""
    value = price_value(price, panel)
    return free_change(value) if panel == "free" else f"{value:+,}" if value else "0"


def _price_parts(price: Price, words: Words) -> list[str]:
    if price.failure is not None:
        return [words("price_refused", kind=price.failure.replace("_", " "))]
    return [f"{words('panel_' + panel)} {price_text(price, panel)}" for panel in PANELS]


def _price_row(price: Price, words: Words) -> tuple[Cell, ...]:
    first = (Cell(words.term(price.knob)), Cell(f"{price.before} → {price.after}"))
    if price.failure is not None:
        return (*first, Cell(words("price_refused", kind=price.failure.replace("_", " "))), *_blank(3))
    return (*first, *(Cell(price_text(price, panel), price_value(price, panel)) for panel in PANELS))


def split(seen: Picture, words: Words) -> Section | None:
    curve, title = seen.ratio, words("section_split")
    assert curve is not None
    if not curve.moves:
        return Section("split", title, (words("split_still"),))
    first, last = curve.points[0], curve.points[-1]
    marked = [(words(key, ratio=_ratio(point)), point) for key, point in marks(seen)]
    alt = words(
        "split_alt",
        first=_ratio(first),
        last=_ratio(last),
        most_tokens=whole(first.tokens),
        least_tokens=whole(last.tokens),
        least_slots=whole(first.slots),
        most_slots=whole(last.slots),
        marks="; ".join(
            words("mark_text", name=name, tokens=whole(point.tokens), slots=whole(point.slots))
            for name, point in marked
        ),
    )
    rows = [_ratio_row(_ratio(point), point) for point in curve.points]
    rows += [_ratio_row(name, point) for name, point in marked]
    rows.append((Cell(words("mark_need")), whole_cell(curve.need_slots), whole_cell(curve.need_tokens), Cell("")))
    return Section(
        "split",
        title,
        (words("split_text", slots=whole(curve.need_slots), tokens=whole(curve.need_tokens)),),
        Chart("split", title, alt),
        (Table(_heads(words, "ratio", "slots", "tokens", "running"), tuple(rows), frozenset((1, 2, 3))),),
        folded=True,
        summary=words("data"),
    )


def marks(seen: Picture) -> list[tuple[str, RatioPoint]]:
    """The marked points of the split with the keys of their words: the default, this plan, the advised one."""
    curve = seen.ratio
    assert curve is not None
    found = [] if curve.default is None else [("mark_default", curve.default)]
    found.append(("mark_present" if curve.present.ratio is not None else "mark_present_fixed", curve.present))
    if curve.advised is not None:
        found.append(("mark_advised", curve.advised))
    return found


def _ratio(point: RatioPoint) -> str:
    return "" if point.ratio is None else f"{point.ratio:g}"


def _ratio_row(name: str, point: RatioPoint) -> tuple[Cell, ...]:
    return Cell(name), whole_cell(point.slots), whole_cell(point.tokens), whole_cell(point.requests)


def host(seen: Picture, words: Words) -> Section | None:
    answer = seen.boot.host
    if answer is None:
        return None
    title, plan, covered = words("section_host"), answer.plan, answer.coverage
    coverage = words(
        "host_coverage",
        length=whole(covered.prefix_tokens),
        kv=whole(covered.kv_prefixes),
        state=whole(covered.state_prefixes),
        usable=whole(covered.usable_prefixes),
    )
    sentences = [words("host_text", ranks=answer.ranks, total=decimal(answer.fullest_bytes)), coverage]
    if answer.level is not None:
        slots = whole(answer.level.max_mamba_cache_size)
        sentences.append(words("host_balance", prefixes=whole(answer.level.coverage.usable_prefixes), slots=slots))
    if answer.fit is not None:
        room = {"available": decimal(answer.fit.available_bytes)}
        spare = answer.fit.spare_bytes
        sentences.append(
            words("host_fits", spare=decimal(spare), **room)
            if spare >= 0
            else words("host_lacks", short=decimal(-spare), **room)
        )
        if answer.fit.refused is not None:
            sentences.append(answer.fit.refused)
        if answer.fit.largest_ratio is None or answer.fit.largest_size is None:
            sentences.append(words("host_none_fits"))
        else:
            largest = {"ratio": f"{answer.fit.largest_ratio:g}", "size": answer.fit.largest_size}
            sentences.append(words("host_largest", **largest))
    sentences += [f"! {hazard.message}" for hazard in answer.hazards]
    parts = words("comma").join(f"{pool.name.upper()} {decimal(pool.nbytes)}" for pool in plan.pools)
    everywhere = dict(zip(plan.pools, answer.pool_bytes, strict=True))
    rows = [
        (
            Cell(pool.name.upper()),
            Cell(words("units_slots" if pool.name == "mamba" else "units_tokens", count=whole(pool.units)), pool.units),
            whole_cell(pool.nbytes),
            whole_cell(everywhere[pool]),
        )
        for pool in plan.pools
    ]
    rows.append((Cell(words("total")), Cell(""), whole_cell(plan.nbytes), whole_cell(answer.fullest_bytes)))
    alt = words("host_alt", parts=parts, total=decimal(answer.fullest_bytes), coverage=coverage)
    return Section(
        "host",
        title,
        tuple(sentences),
        Chart("host", title, alt),
        (Table(_heads(words, "pool", "units", "rank", "host"), tuple(rows), frozenset((1, 2, 3))),),
        folded=True,
        summary=words("data"),
    )


def size(segment: Segment) -> str:
    """The digits a segment deserves: `~37.9 GiB` where it is estimated, `32.07 GiB` where the bytes are known."""
    if segment.certainty == "estimated":
        return f"~{gib(segment.nbytes)}"
    return binary(segment.nbytes)


def _bytes(segment: Segment) -> Cell:
    return Cell("" if segment.certainty == "estimated" else whole(segment.nbytes), segment.nbytes)


def whole_cell(value: int) -> Cell:
    return Cell(whole(value), value)


def _heads(words: Words, *names: str) -> tuple[str, ...]:
    return tuple(words(f"head_{name}") for name in names)


def _blank(count: int) -> tuple[Cell, ...]:
    return (Cell(""),) * count
