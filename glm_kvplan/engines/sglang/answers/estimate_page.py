"""The page of `kvplan estimate`: ledgers, one request's bill, what is allocated beside what is charged."""

from collections.abc import Iterator

from glm_kvplan.engines.mix_words import promised
from glm_kvplan.engines.sglang.answers.estimate_answer import EstimateAnswer, FitShown, LedgerShown, StageShown
from glm_kvplan.engines.sglang.answers.host_page import host_sections
from glm_kvplan.engines.sglang.answers.map_chart import map_stack
from glm_kvplan.engines.sglang.answers.terms import terms
from glm_kvplan.show.format import SHORT_UNIT, count, decimal, gib, whole
from glm_kvplan.show.page import Cell, Column, Figure, Line, Page, Row, Section, Table, Tone, Verdict
from glm_kvplan.show.said import Said, say
from glm_kvplan.units import GIB


def estimate_page(answer: EstimateAnswer, *, explain: bool = False) -> Page:
    """Everything of the fullest rank; with `explain` the formula, values and source of every price."""
    stage = answer.fullest
    verdict = None if answer.fit is None else _verdict(answer, answer.fit)
    lead = [Line(answer.head.layout, "muted")]
    if verdict is None:
        lead += [Line(_sum(answer), "strong"), *map(Line, _remarks(answer))]
    sections = [
        Section((_ledger_table(answer, stage),), say("What one rank's ledgers cost"), quiet=True),
        Section((Line(_request(answer)),), say("One request"), quiet=True, spare=4),
        Section((_allocation_table(stage),), say("What one rank's pools take"), quiet=True, spare=2),
        Section((Figure(map_stack(answer.memory_map)),), say("Memory map"), quiet=True, spare=1),
    ]
    if answer.host is not None:
        sections += host_sections(answer.host)
    if explain:
        sections += [_explained(ledger) for ledger in stage.ledgers]
    head, foot = answer.head, terms(answer.head, ranks=True)
    return Page(head.title, tuple(lead), tuple(sections), answer.warnings, head.notes, foot, verdict=verdict)


def _verdict(answer: EstimateAnswer, fit: FitShown) -> Verdict:
    """Whether the pools fit beside the weights, and on the host."""
    templates = {
        True: "Yes: pools of {requests} fit beside the weights: {pools} of {left}",
        None: "Perhaps: pools of {requests} may fit beside the weights: {pools} of {left}",
        False: "No: pools of {requests} do not fit beside the weights: {pools} of {left}",
    }
    tones: dict[bool | None, Tone] = {True: "good", None: "careful", False: "bad"}
    text, remarks = say("No: {reason}.", reason=fit.reason), tuple(_remarks(answer))
    tone: Tone = "bad"
    if not fit.reason:
        tone = tones[fit.fits]
        text = say(
            templates[fit.fits],
            requests=count(answer.workload.concurrency, "request"),
            pools=f"{answer.fullest.allocated_bytes / GIB:.1f}",
            left=f"~{gib(fit.left_bytes)} (+-{fit.error_bytes / GIB:.1f})",
        )
    if fit.fits is not False and answer.host is not None and not answer.host.holds:
        text, tone = say("No: the host's memory does not hold the HiCache pools."), "bad"
    return Verdict(text, tone, remarks)


def _sum(answer: EstimateAnswer) -> Said:
    return say(
        "pools of {pools} a rank, {everywhere} on {gpus}; --gpu NAME tells if they fit",
        pools=gib(answer.fullest.allocated_bytes),
        everywhere=gib(answer.allocated_bytes_all_ranks),
        gpus=count(answer.head.gpus, "GPU"),
    )


def _remarks(answer: EstimateAnswer) -> Iterator[Said]:
    """What the numbers are of, and how sure."""
    stage = answer.fullest
    yield _holds(answer)
    if answer.mix is not None:
        mean = (count(answer.mix.mean_needed_sizes.tokens, "token"), gib(answer.mix.mean_allocated_bytes))
        yield promised(answer.mix.confidence, mean)
    if stage.certainty == "lower bound":
        yield say("the draft model's own cache is not known: every sum of bytes is at least this")
    if len(answer.stages) > 1:
        template = "the fullest of {count} pipeline stages: {layers}"
        yield say(template, count=len(answer.stages), layers=layer_span(stage.layers))


def layer_span(layers: range) -> Said:
    """`layers 0-21` of a pipeline stage, `layer 7` where it has one."""
    if len(layers) == 1:
        return say("layer {first}", first=layers.start)
    return say("layers {first}-{last}", first=layers.start, last=layers.stop - 1)


def _holds(answer: EstimateAnswer) -> Said:
    workload, sizes = answer.workload, answer.sizes
    deployment = answer.head.deployment
    workers = int(str(deployment["attn_dp_size"])) * int(str(deployment["replicas"]))
    # not every worker has as many requests where they do not divide
    template = "{requests} x {context}; a rank holds {sizes}"
    if workload.concurrency % workers:
        template = "{requests} x {context}; a rank has room for {sizes}"
    sizes_said = (
        count(sizes.running_requests, "request"),
        count(sizes.tokens, "token"),
        count(sizes.state_slots, "state slot"),
    )
    return say(
        template,
        requests=whole(workload.concurrency),
        context=count(workload.context, "token") if answer.mix is None else f"({answer.mix.contexts})",
        sizes=sizes_said,
    )


def _ledger_table(answer: EstimateAnswer, stage: StageShown) -> Table:
    columns = (
        Column(say("ledger")),
        Column(say("one unit costs"), "count"),
        Column(say("units"), "count"),
        Column(say("one rank"), "decimal"),
        Column(count(answer.ranks, "rank"), "decimal"),
        Column(say("share"), "share"),
    )
    found = [
        Row(
            (
                say(ledger.title),
                say("{size} B/{unit}", size=whole(ledger.bytes_per_unit), unit=say(SHORT_UNIT[ledger.unit])),
                ledger.units,
                ledger.nbytes,
                ledger.bytes_all_ranks,
                ledger.nbytes / stage.nbytes if stage.nbytes else 0.0,
            )
        )
        for ledger in stage.ledgers
    ]
    everywhere = sum(ledger.bytes_all_ranks for ledger in stage.ledgers)
    total = Row((say("total"), None, None, stage.nbytes, everywhere, None), "strong")
    return Table(columns, (*found, total))


def _request(answer: EstimateAnswer) -> Said:
    """One request of the workload: its tokens, its state slots, its rows."""
    one = answer.request
    return say(
        "one request on a rank: {size} = {token_size} for {tokens} + {slot_size} for {slots} + {row_size} for its rows"
        if answer.mix is None
        else "the longest: {size} = {token_size} for {tokens} + {slot_size} for {slots} + {row_size} for its rows",
        size=decimal(one.nbytes),
        token_size=decimal(one.token_bytes),
        tokens=count(one.tokens, "token"),
        slot_size=decimal(one.state_slot_bytes),
        slots=count(one.state_slots, "state slot"),
        row_size=decimal(one.row_bytes),
    )


def _allocation_table(stage: StageShown) -> Table:
    columns = (Column(say("what one rank's pools take")), Column(say("bytes"), "bytes"), Column("", "decimal"))
    charged = Row((say("charged to the engine's budget"), stage.charged_bytes, stage.charged_bytes))
    parts = [
        Row((say("  {name}", name=say(part.name)), Cell(part.nbytes, kind="byte_change"), part.nbytes), "muted")
        for part in stage.difference
    ]
    return Table(
        columns,
        (charged, *parts, Row((say("allocated"), stage.allocated_bytes, stage.allocated_bytes), "strong")),
    )


def _explained(ledger: LedgerShown) -> Section:
    budget = "charged to the engine's budget" if ledger.charged else "not charged to the engine's budget"
    copied = "can have a copy in DRAM" if ledger.backed_up else "never copied to DRAM"
    facts = say("{title} (per {unit}; exact; {budget}; {copied})", title=say(ledger.title), unit=say(ledger.unit),
                budget=say(budget), copied=say(copied))  # fmt: skip
    lines = [
        Line(facts, "strong"),
        Line(f"  {ledger.formula}"),
        Line(f"  = {ledger.formula_in_numbers}"),
        Line(
            say(
                "  = {price} B; x {units} = {total} B",
                price=whole(ledger.bytes_per_unit),
                units=whole(ledger.units),
                total=whole(ledger.nbytes),
            )
        ),
    ]
    if ledger.written_bytes_per_unit != ledger.bytes_per_unit:
        lines.append(Line(say("  reserved; written are {size} B of it", size=whole(ledger.written_bytes_per_unit))))
    lines.append(Line(say("  source: {source}", source=ledger.source), "muted"))
    return Section(tuple(lines))
