"""The page of `kvplan pools`: every tensor of one rank, and what of it the engine's budget pays for."""

from collections.abc import Iterator

from glm_kvplan.engines.sglang.answers.estimate_page import layer_span
from glm_kvplan.engines.sglang.answers.pools_answer import PoolsAnswer
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.tensor_tables import listed_tensors
from glm_kvplan.show.format import count, decimal
from glm_kvplan.show.page import Cell, Column, Line, Page, Row, Section, Table
from glm_kvplan.show.said import Said, Text, say


def pools_page(answer: PoolsAnswer) -> Page:
    sections = (
        Section((listed_tensors(answer.tensors),), say("Tensors"), quiet=True),
        Section((_difference_table(answer),), say("Device memory of one rank"), quiet=True),
    )
    head = answer.head
    lead = rank_lines(head.layout, answer.pp_size, answer.pp_rank, answer.layers, answer.sizes)
    return Page(head.title, tuple(lead), sections, answer.warnings, head.notes)


def rank_lines(layout: Text, pp_size: int, pp_rank: int, layers: range, sizes: PoolSizes) -> Iterator[Line]:
    """How the plan is laid out, the rank's layers where there are several stages, and its sizes."""
    yield Line(layout, "muted")
    if pp_size > 1:
        yield Line(say("pipeline rank {rank}: {layers}", rank=pp_rank, layers=layer_span(layers)), "muted")
    yield Line(say("one rank: {sizes}", sizes=sizes_said(sizes)))


def sizes_said(sizes: PoolSizes) -> Said:
    """`1,000,000 tokens, 200 state slots, 40 running requests`."""
    parts = (
        count(sizes.tokens, "token"),
        count(sizes.state_slots, "state slot"),
        count(sizes.running_requests, "running request"),
    )
    return say("{parts}", parts=parts)


def _difference_table(answer: PoolsAnswer) -> Table:
    columns = (Column(say("device memory of one rank")), Column(say("bytes"), "bytes"), Column(say("why")))
    found = [Row((say("charged to the engine's budget"), answer.charged_bytes, ""))]
    found += [
        Row((say("  {name}", name=say(part.name)), Cell(part.nbytes, kind="byte_change"), Cell(part.reason, "muted")))
        for part in answer.difference
    ]
    found.append(Row((say("allocated"), answer.allocated_bytes, decimal(answer.allocated_bytes)), "strong"))
    if answer.unexplained_bytes:
        rest = Cell(answer.unexplained_bytes, kind="byte_change")
        found.append(Row((say("unexplained"), rest, say("a bug in kvplan")), "bad"))
    return Table(columns, tuple(found))
