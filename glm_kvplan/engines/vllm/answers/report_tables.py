"""The sections of a report without a chart: formulas with their sources, and what to paste."""

import shlex
from collections.abc import Mapping

from glm_kvplan.engines.flag_words import flag_lines
from glm_kvplan.engines.vllm.answers.report_answer import ReportAnswer
from glm_kvplan.engines.vllm.flags import FLAG
from glm_kvplan.show.format import whole
from glm_kvplan.show.page import Code, Column, Section, Table, rows
from glm_kvplan.show.said import Text, say


def formulas_section(answer: ReportAnswer) -> Section:
    """Where the memory of the blocks comes from, what a unit of each kind costs, and the formulas of the blocks."""
    tables = (_memory_table(answer), _blocks_table(answer), _ledger_table(answer))
    return Section(tables, say("Every formula, with its values and source"))


def _memory_table(answer: ReportAnswer) -> Table:
    found = rows(
        *((say(part.name), f"{part.gib:+.2f} GiB", say(part.how), part.source) for part in answer.start.memory.parts)
    )
    columns = (Column(say("what")), Column(say("value"), "count"), Column(say("certainty")), Column(say("source")))
    return Table(columns, found, folded=say("Where the memory of the blocks comes from"))


def _blocks_table(answer: ReportAnswer) -> Table:
    found = rows(*((each.title, each.formula, each.numbers, each.source) for each in answer.formulas))
    columns = tuple(map(Column, (say("what"), say("formula"), say("in numbers"), say("source"))))
    return Table(columns, found, folded=say("What a block and a request take"))


def _ledger_table(answer: ReportAnswer) -> Table:
    found = rows(
        *(
            (
                say(ledger.title),
                ledger.formula,
                ledger.formula_in_numbers,
                say(
                    "{bytes} B a {unit} × {units} = {total} B",
                    bytes=whole(ledger.bytes_per_unit),
                    unit=say(ledger.unit),
                    units=whole(ledger.units),
                    total=whole(ledger.nbytes),
                ),
                ledger.source,
            )
            for ledger in answer.cost.ledgers
        )
    )
    titles = (say("what"), say("formula"), say("in numbers"), say("value"), say("source"))
    columns = tuple(Column(title, "count" if place == 3 else "text") for place, title in enumerate(titles))
    return Table(columns, found, folded=say("What one unit of each ledger costs"))


def paste_section(answer: ReportAnswer) -> Section:
    """The launch's own command, and the command with the advised flags."""
    blocks = [_command(answer, {}, say("The whole command, without flags that move no memory:"))]
    advised = answer.advised
    if advised.flags:
        intro = say(
            "With the advised flags, on {gpus} GPUs, where {served} such requests fit:",
            served=whole(advised.served.requests),
            gpus=advised.options[0].gpus,
        )
        blocks.append(_command(answer, advised.flags, intro))
    return Section(tuple(blocks), say("The command to paste"))


def _command(answer: ReportAnswer, changes: Mapping[str, object], introduction: Text) -> Code:
    flags = {name: value for name, value in {**answer.flags, **changes}.items() if value is not None}
    switches = flag_lines(FLAG, {}, answer.environment)
    words = f"vllm serve {shlex.quote(answer.model)} {flag_lines(FLAG, flags)}".rstrip()
    return Code(switches + words, introduction)
