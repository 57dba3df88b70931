"""The page of `kvplan estimate`: blocks needed, what is written into them, what is padding, and what nothing fills."""

from collections.abc import Iterator

from glm_kvplan.engines.mix_words import promised
from glm_kvplan.engines.vllm.answers.estimate_answer import EstimateAnswer, LedgerShown
from glm_kvplan.engines.vllm.answers.terms import terms
from glm_kvplan.show.format import count, decimal, gib, whole
from glm_kvplan.show.page import Column, Line, Page, Row, Section, Table, Verdict
from glm_kvplan.show.said import Said, say
from glm_kvplan.units import GIB


def estimate_page(answer: EstimateAnswer, *, explain: bool = False) -> Page:
    """Everything of one GPU; with `explain` the formula, values and source of every price."""
    sections = [
        Section((_blocks_table(answer),), say("The blocks one GPU needs"), quiet=True, spare=1),
        Section((_ledger_table(answer),), say("What fills them"), quiet=True),
        Section(tuple(_request(answer)), say("One request"), quiet=True, spare=2),
    ]
    if explain:
        sections += [_explained(ledger) for ledger in answer.ledgers]
    verdict, remarks = _verdict(answer), tuple(_remarks(answer))
    lead = [Line(answer.head.layout, "muted")]
    if verdict is None:
        lead += [Line(_sum(answer), "strong"), *map(Line, remarks)]
    else:
        verdict = verdict._replace(remarks=remarks)
    head = answer.head
    return Page(head.title, tuple(lead), tuple(sections), answer.warnings, head.notes, terms(), verdict=verdict)


def _verdict(answer: EstimateAnswer) -> Verdict | None:
    """Whether the blocks fit; None where no card is named and no flag fixes them."""
    requests, memory = count(answer.workload.concurrency, "request"), answer.memory
    if not answer.fits:
        return Verdict(say("No: blocks of {requests} do not fit", requests=requests), "bad")
    if answer.given_blocks is not None:
        return Verdict(say("Yes: blocks of {requests} are no more than the flags give", requests=requests), "good")
    if memory is None:
        return None
    text = say(
        "Yes: blocks of {requests} fit beside the weights: {size} of ~{left}",
        requests=requests,
        size=f"{answer.nbytes / GIB:.1f}",
        left=gib(memory.nbytes),
    )
    return Verdict(text, "good" if answer.nbytes <= memory.low_bytes else "careful")


def _sum(answer: EstimateAnswer) -> Said:
    return say(
        "blocks of {size} a GPU, {everywhere} on {gpus}; --gpu NAME tells if they fit",
        size=gib(answer.nbytes),
        everywhere=gib(answer.bytes_all_gpus),
        gpus=count(answer.head.gpus, "GPU"),
    )


def _remarks(answer: EstimateAnswer) -> Iterator[Said]:
    yield _holds(answer)
    if answer.mix is not None:
        mean = (count(answer.mix.mean_blocks, "block"), decimal(answer.mix.mean_bytes))
        yield promised(answer.mix.confidence, mean)


def _holds(answer: EstimateAnswer) -> Said:
    return say(
        "{requests} x {context}; an engine serves {held} of them, in blocks of {tokens}",
        requests=whole(answer.workload.concurrency),
        context=count(answer.workload.context, "token") if answer.mix is None else f"({answer.mix.contexts})",
        held=whole(answer.requests_per_engine),
        tokens=count(answer.block_tokens, "token"),
    )


def _blocks_table(answer: EstimateAnswer) -> Table:
    columns = (Column(say("blocks of one GPU")), Column(say("blocks"), "count"), Column(say("bytes"), "decimal"))
    needed = answer.blocks
    held = (
        ("tokens", needed.tokens),
        ("KDA states", needed.states),
        ("tails", needed.tails),
        ("never given out", needed.unused),
    )
    rows = [Row((say(name), number, number * answer.block_bytes)) for name, number in held]
    rows.append(Row((say("needed"), needed.total, answer.nbytes), "strong"))
    if answer.given_blocks is not None:
        rows.append(Row((say("given by flags"), answer.given_blocks, answer.given_blocks * answer.block_bytes)))
    return Table(columns, tuple(rows))


def _ledger_table(answer: EstimateAnswer) -> Table:
    columns = (
        Column(say("what fills them")),
        Column(say("one unit costs"), "count"),
        Column(say("units"), "count"),
        Column(say("one GPU"), "decimal"),
        Column(count(answer.head.gpus, "GPU"), "decimal"),
        Column(say("share"), "share"),
    )
    gpus = answer.head.gpus
    rows = [
        Row(
            (
                say(ledger.title),
                say("{size} B/{unit}", size=whole(ledger.bytes_per_unit), unit=say(ledger.unit)),
                ledger.units,
                ledger.nbytes,
                ledger.bytes_all_gpus,
                ledger.nbytes / answer.nbytes,
            )
        )
        for ledger in answer.ledgers
    ]
    rows += [
        Row((say(rest.name), None, None, rest.nbytes, rest.nbytes * gpus, rest.nbytes / answer.nbytes), "muted")
        for rest in answer.rests
    ]
    rows.append(Row((say("all blocks"), None, None, answer.nbytes, answer.bytes_all_gpus, None), "strong"))
    return Table(columns, tuple(rows))


def _request(answer: EstimateAnswer) -> tuple[Line, ...]:
    one, fixed = answer.request, answer.fixed
    share = f"{one.unused_share:.0%}"
    return (
        Line(
            say(
                "one request takes {blocks} a GPU: {size}, of which it never writes {share}"
                if answer.mix is None
                else "the longest takes {blocks} a GPU: {size}, of which it never writes {share}",
                blocks=count(one.blocks, "block"),
                size=decimal(one.nbytes),
                share=share,
            )
        ),
        Line(
            say(
                "before its first token it holds {blocks}: {size}, what {tokens} would take",
                blocks=count(fixed.blocks, "block"),
                size=decimal(fixed.nbytes),
                tokens=count(fixed.tokens, "token"),
            )
        ),
    )


def _explained(ledger: LedgerShown) -> Section:
    lines = (
        Line(say("{title} (per {unit}; exact)", title=say(ledger.title), unit=say(ledger.unit)), "strong"),
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
        Line(say("  source: {source}", source=ledger.source), "muted"),
    )
    return Section(lines)
