"""The sections of a report without a chart: sizes, flags with their reasons, formulas, flags to paste, the command."""

from glm_kvplan.engines.flag_words import flag_lines
from glm_kvplan.engines.report_parts import gpus_said
from glm_kvplan.engines.sglang.answers.report_answer import ReportAnswer
from glm_kvplan.engines.sglang.answers.solve_page import SIZES, end_said, moves
from glm_kvplan.engines.sglang.flags import FLAG
from glm_kvplan.engines.sglang.sizing.binding_limits import Limit
from glm_kvplan.memory.budget import show_gib
from glm_kvplan.memory.budget_words import at_most
from glm_kvplan.show.format import three_digits, whole
from glm_kvplan.show.page import Cell, Code, Column, Line, Row, Section, Table, rows
from glm_kvplan.show.said import Said, Text, say


def sizes_section(answer: ReportAnswer) -> Section:
    """The engine's three integers with their limits, and the readings of memory they follow from."""
    start, budget = answer.start, answer.start.memory
    found: list[tuple[Cell | Text | int, ...]] = [
        (say("free before the load"), f"{show_gib(budget.pre_gib, budget.how)} GiB", "", ""),
        (say("free after the load"), f"{show_gib(budget.available_gib, budget.how)} GiB", "", ""),
    ]
    if start.limits is not None:
        estimated = budget.estimated
        bounds = (
            _bound(start.limits.tokens, estimated),
            say(start.limits.state_slots.name),
            _bound(start.limits.requests, estimated),
        )
        found += [
            (
                name,
                Cell(start.sizes[place], estimated=moves(start, place), at_most=budget.upper_bound),
                _span(answer, place),
                bounds[place],
            )
            for place, name in enumerate(SIZES)
        ]
    columns = (
        Column(say("what")),
        Column(say("value"), "count"),
        Column(say("within the estimate")),
        Column(say("bound by")),
    )
    workers = answer.head.deployment["attn_dp_size"]
    said = () if workers == 1 else (Line(say("Sizes are those of one DP worker; there are {count}.", count=workers)),)
    return Section((*said, Table(columns, rows(*found))), say("What the engine sizes"))


def _span(answer: ReportAnswer, place: int) -> Text:
    low, high = map(end_said, answer.start.within(place))
    return "" if low == high else say("{low} … {high}", low=low, high=high)


def _bound(limits: tuple[Limit, ...], estimated: bool) -> Said:
    first = say(limits[0].name)
    if len(limits) == 1:
        return first
    value = f"~{three_digits(limits[1].value)}" if estimated else whole(limits[1].value)
    return say("{name}, then {next} at {value}", name=first, next=say(limits[1].name), value=value)


def formulas_section(answer: ReportAnswer) -> Section:
    """Memory, the sizing step by step, the ledgers, and what serving needs: values and sources."""
    tables = (_memory_table(answer), _steps_table(answer), _ledger_table(answer), _needs_table(answer))
    return Section(tables, say("Every formula, with its values and source"))


def _columns(*titles: Text, numeric: int = -1) -> tuple[Column, ...]:
    return tuple(Column(title, "count" if place == numeric else "text") for place, title in enumerate(titles))


def _memory_table(answer: ReportAnswer) -> Table:
    found = rows(
        *((part.name, f"{part.gib:+.2f} GiB", say(part.how), part.source) for part in answer.start.memory.parts)
    )
    columns = _columns(say("what"), say("value"), say("certainty"), say("source"), numeric=1)
    return Table(columns, found, folded=say("Where the free memory comes from"))


def _steps_table(answer: ReportAnswer) -> Table:
    found = rows(
        *(
            (step.name, step.formula, step.formula_in_numbers, f"{_exact(step.value)} {step.unit}", step.source)
            for step in answer.steps
        )
    )
    columns = _columns(say("what"), say("formula"), say("in numbers"), say("value"), say("source"), numeric=3)
    return Table(columns, found, folded=say("The sizing of one rank, step by step"))


def _exact(value: int | float) -> str:
    return whole(value) if isinstance(value, int) else repr(value)


def _ledger_table(answer: ReportAnswer) -> Table:
    found = rows(
        *(
            (
                ledger.account.title,
                ledger.account.formula,
                ledger.formula_in_numbers,
                say(
                    "{bytes} B a {unit} × {units} = {total} B",
                    bytes=whole(ledger.bytes_per_unit),
                    unit=say(ledger.account.unit),
                    units=whole(ledger.units),
                    total=whole(ledger.total),
                ),
                ledger.account.source,
            )
            for ledger in answer.ledgers
        )
    )
    columns = _columns(say("what"), say("formula"), say("in numbers"), say("value"), say("source"), numeric=3)
    return Table(columns, found, folded=say("What one unit of each ledger costs"))


def _needs_table(answer: ReportAnswer) -> Table:
    items = () if answer.start.needs is None else answer.start.needs.items
    columns = (
        Column(say("what")),
        Column(say("value"), "binary"),
        *_columns(say("certainty"), say("grows with"), say("source")),
    )
    found = (
        Row(
            (
                say(item.name),
                Cell(item.nbytes, estimated=item.certainty != "exact"),
                say(item.certainty),
                item.bound,
                item.source,
            )
        )
        for item in items
    )
    return Table(columns, tuple(found), folded=say("What serving needs of the free memory"))


def paste_section(answer: ReportAnswer) -> Section:
    """The plan's flags, then what serves the whole demand: the plan under the advised split, or another layout."""
    advised = answer.advised
    blocks: list[Line | Code] = []
    if answer.flags:
        blocks.append(_code(answer, {}, say("The plan as it is:")))
    else:
        blocks.append(Line(say("No flag is given: every value is the engine's own.")))
    for layout in advised.layouts[:1]:
        intro = say(
            "A layout of one server that serves all {wanted} requests, on {gpus}:",
            wanted=whole(answer.demand.concurrency),
            gpus=f"{layout.gpus} × {answer.head.gpu.name}",
        )
        blocks.append(Code(flag_lines(FLAG, layout.flags, answer.environment), intro))
    if not advised.holds and not advised.layouts and answer.start.failure is None:
        blocks.append(Line(say("no layout nearby serves it all")))
    if advised.sizes is not None:
        intro = say(
            "The plan with the advised split on {gpus}, which sizes {tokens} tokens, {slots} state slots and "
            "{requests} running requests a worker, and serves {served} of the {wanted} requests:",
            gpus=gpus_said(answer.head),
            tokens=at_most(whole(advised.sizes.tokens), advised.memory),
            slots=at_most(whole(advised.sizes.state_slots), advised.memory),
            requests=at_most(whole(advised.sizes.running_requests), advised.memory),
            served=at_most(whole(advised.served.requests), advised.memory),
            wanted=whole(answer.demand.concurrency),
        )
        blocks.append(_code(answer, dict(advised.flags), intro))
    return Section(tuple(blocks), say("Flags to paste"))


def _code(answer: ReportAnswer, changes: dict[str, object], introduction: Text) -> Code:
    return Code(flag_lines(FLAG, {**answer.flags, **changes}, answer.environment), introduction)
