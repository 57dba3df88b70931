"""The page of `kvplan solve`: the line vLLM prints and beside it what the blocks hold."""

from collections.abc import Iterator

from glm_kvplan.engines.mix_words import promised
from glm_kvplan.engines.vllm.answers.memory_lines import memory_line
from glm_kvplan.engines.vllm.answers.solve_answer import ServedShown, SolveAnswer
from glm_kvplan.engines.vllm.answers.terms import terms
from glm_kvplan.engines.vllm.priced_moves import PricedMove
from glm_kvplan.show.format import count, decimal, gib, three_digits, whole
from glm_kvplan.show.page import Cell, Column, Line, Page, Row, Section, Table, Verdict
from glm_kvplan.show.said import Text, say
from glm_kvplan.units import GIB

_HOLDS = {"tokens": "rows and index keys", "states": "KDA state", "tail": "tail"}


def solve_page(answer: SolveAnswer) -> Page:
    lead, shown = (Line(answer.head.layout, "muted"),), (*sections(answer), *prices(answer))
    return Page(answer.head.title, lead, shown, answer.warnings, answer.head.notes, terms(), verdict=_verdict(answer))


def _verdict(answer: SolveAnswer) -> Verdict:
    """Whether it starts, and how many requests it then holds."""
    remarks: tuple[Text, ...] = (memory_line(answer.memory),)
    if answer.failure is not None:
        source = f" ({answer.failure.source})" if answer.failure.source else ""
        return Verdict(
            say("No: vLLM refuses to start: {reason}", reason=answer.failure.reason + source), "bad", remarks
        )
    asked = next(row for row in answer.served if row.contexts == answer.priced_contexts)
    requests = _about(answer, asked.requests, (asked.low, asked.high))
    if answer.certainty == "estimated" and asked.low != asked.high:
        requests += f" ({three_digits(asked.low)} to {three_digits(asked.high)})"
    template = "Yes: {requests} requests of {contexts} tokens fit at once on {gpus}, bound by {limit}"
    if not asked.requests:
        template = "It starts, but no request of {contexts} tokens fits on {gpus}, bound by {limit}"
    found = say(template, requests=requests, contexts=asked.contexts, gpus=answer.head.cards, limit=say(asked.limit))
    if asked.mixed:
        remarks = (promised(asked.confidence, asked.mean_requests), *remarks)
    return Verdict(found, "good" if asked.low else "careful", remarks)


def sections(answer: SolveAnswer) -> Iterator[Section]:
    """What the page shows before the prices; a report shows the same."""
    if answer.failure is not None:
        yield Section(tuple(_remedies(answer)), say("Refused"), quiet=True)
    else:
        yield Section(tuple(_printed(answer)), say("What vLLM prints, and what it means"), quiet=True, spare=5)
        yield Section((_served_table(answer),), say("Requests at once"), quiet=True)
    yield Section(tuple(_request(answer)), say("One request"), quiet=True, spare=4)
    yield Section(tuple(_blocks(answer)), say("One block"), quiet=True, spare=1)
    if answer.memory.how == "estimated":
        title = say("The memory that is left for blocks")
        yield Section((_memory_table(answer),), title, quiet=True, spare=2)


def _about(answer: SolveAnswer, value: int, ends: tuple[int, int]) -> str:
    """A count, with `~` and three digits where an estimate of the memory moves it."""
    exact = answer.certainty != "estimated" or ends == (value, value)
    return whole(value) if exact else f"~{three_digits(value)}"


def _between(ends: tuple[int, int]) -> Text:
    low, high = ends
    return "" if low == high else say("{low} to {high}", low=three_digits(low), high=three_digits(high))


def _printed(answer: SolveAnswer) -> Iterator[Line]:
    printed = answer.printed
    ends = (printed.low_cache_tokens, printed.high_cache_tokens)
    line = printed.line
    if answer.certainty == "estimated" and ends != (printed.cache_tokens, printed.cache_tokens):
        line = (
            f"GPU KV cache size: {_about(answer, printed.cache_tokens, ends)} tokens, Maximum concurrency for "
            f"{whole(printed.max_model_len)} tokens per request: ~{printed.concurrency:.1f}x"
        )
    yield Line(say("vLLM prints: {line}", line=line), "strong")
    yield Line(
        say(
            "that is {blocks} blocks over the {needed} of one request of {length} tokens, in tokens; not a capacity",
            blocks=_about(answer, answer.num_blocks, answer.span),
            needed=_longest_row(answer).blocks,
            length=whole(printed.max_model_len),
        )
    )
    if answer.memory.how == "measured" and answer.span[0] != answer.span[1]:
        low, high = (whole(end) for end in answer.span)
        yield Line(say("a log prints two decimals of the memory: {low} to {high} blocks", low=low, high=high), "muted")
    longest = _about(answer, answer.longest_context, answer.longest_context_span)
    if answer.tokens_of_all_blocks > answer.longest_context:
        yield Line(say("one request can have {tokens} tokens: --max-model-len ends it, not the blocks", tokens=longest))
    else:
        yield Line(say("one request can have {tokens} tokens: then the blocks end", tokens=longest))


def _longest_row(answer: SolveAnswer) -> ServedShown:
    return next(row for row in answer.served if row.longest == answer.printed.max_model_len)


def _served_table(answer: SolveAnswer) -> Table:
    columns = (
        Column(say("context")),
        Column(say("blocks"), "count"),
        Column(say("a request"), "decimal"),
        Column(say("unused"), "share", 2),
        Column(say("at once"), "count"),
        Column(say("between"), "text", 1),
        Column(say("their tokens"), "count"),
        Column(say("ended by")),
    )
    rows = []
    for row in answer.served:
        moved = row.low != row.high
        rows.append(
            Row(
                (
                    row.contexts,
                    row.blocks,
                    row.nbytes,
                    row.unused_share,
                    Cell(row.requests, "strong", moved and answer.certainty == "estimated"),
                    Cell(_between((row.low, row.high)), "muted"),
                    Cell(row.tokens, "", moved and answer.certainty == "estimated"),
                    say(row.limit),
                )
            )
        )
    return Table(columns, tuple(rows), say("requests of the whole deployment that run at once"))


def _request(answer: SolveAnswer) -> Iterator[Line]:
    one = answer.request
    yield Line(
        say(
            "before its first token a request holds {blocks}: {size} a GPU, what {tokens} would take",
            blocks=count(one.fixed.blocks, "block"),
            size=decimal(one.fixed.nbytes),
            tokens=count(one.fixed.tokens, "token"),
        )
    )
    yield Line(
        say(
            "  {states} in each of {groups}, and one block of the tail",
            states=count(one.states, "state"),
            groups=count(one.state_groups, "state group"),
        ),
        "muted",
    )


def _blocks(answer: SolveAnswer) -> Iterator[Line | Table]:
    block = answer.block
    yield Line(
        say(
            "a block takes {size} bytes a GPU and holds {tokens} tokens ({price} bytes a token): {reason}",
            size=whole(block.nbytes),
            tokens=whole(block.tokens),
            price=whole(block.token_bytes),
            reason=block.reason,
        )
    )
    columns = (
        Column(say("a block of")),
        Column(say("groups"), "count", 1),
        Column(say("layers"), "count", 2),
        Column(say("used"), "bytes"),
        Column(say("padding"), "bytes"),
        Column(say("left over"), "bytes"),
        Column(say("unused"), "share"),
    )
    yield Table(
        columns,
        tuple(
            Row(
                (
                    say(_HOLDS[use.holds]),
                    use.groups,
                    use.layers,
                    use.used_bytes,
                    use.padding_bytes,
                    use.rest_bytes,
                    use.unused_share,
                )
            )
            for use in block.uses
        ),
    )


def _memory_table(answer: SolveAnswer) -> Table:
    columns = (Column(say("memory of one GPU")), Column(say("GiB"), "gib_change"), Column(say("error")))
    rows = [Row((say(part.name), int(part.gib * GIB), _error(part.error_gib))) for part in answer.memory.parts]
    nbytes, low, high = answer.memory.nbytes, answer.memory.low_bytes, answer.memory.high_bytes
    lacks = nbytes < 0
    if lacks:
        nbytes, low, high = -nbytes, -high, -low
    ends = say("{low} to {high}", low=gib(low), high=gib(high)) if low >= 0 else ""
    name = say("lacking before the first block" if lacks else "for blocks")
    rows.append(Row((name, Cell(nbytes, estimated=True, kind="gib"), ends), "strong"))
    return Table(columns, tuple(rows))


def _error(error: float) -> str:
    return f"+-{error:.1f}" if error else ""


def _remedies(answer: SolveAnswer) -> Iterator[Line]:
    if not answer.remedies:
        yield Line(say("no flag lets it start, nor two, nor twice the GPUs up to 64"))
        return
    single = answer.remedies[0].beside is None
    yield Line(say("each of these alone lets it start:" if single else "no single flag lets it start; two do:"))
    for remedy in answer.remedies:
        yield Line(f"  {remedy.text}")


def prices(answer: SolveAnswer) -> Iterator[Section]:
    """What one step of each knob buys, where that was asked."""
    if answer.prices is None:
        return
    blocks: list[Line | Table] = []
    if answer.certainty == "estimated":
        blocks.append(Line(say("~ from the middle of the estimate"), "muted"))
    columns = (
        Column(say("knob")),
        Column(say("from → to")),
        Column(say("requests"), "change"),
        Column(say("longest context"), "change"),
        Column(say("fixed a request"), "binary_change"),
        Column(say("GPUs"), "change"),
    )
    rows = tuple(_price_row(price, answer.certainty == "estimated") for price in answer.prices)
    title = say(
        "prices: each knob one step on, resolved and started anew; requests of {contexts} tokens at once, in the whole "
        "deployment",
        contexts=answer.priced_contexts,
    )
    yield Section((*blocks, Table(columns, rows)), title)


def _price_row(price: PricedMove, estimated: bool) -> Row:
    moved = Cell(say("{before} → {after}", before=price.before, after=price.after), "muted")
    if price.failure is not None:
        return Row((price.knob, moved, Cell(say("refused: {reason}", reason=price.failure), "bad"), None, None, None))
    return Row(
        (
            price.knob,
            moved,
            Cell(price.requests, estimated=estimated),
            Cell(price.longest_context, estimated=estimated),
            price.fixed_bytes,
            price.gpus,
        )
    )
