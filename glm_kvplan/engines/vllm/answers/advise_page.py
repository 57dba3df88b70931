"""The page of `kvplan advise` of a vLLM launch: what to type, what it serves then, and what else would."""

from collections.abc import Iterator

from glm_kvplan.engines.load_verdict import ServedNow, load_verdict
from glm_kvplan.engines.vllm.answers.advise_answer import AdviseAnswer, Option
from glm_kvplan.engines.vllm.answers.memory_shown import memory_line
from glm_kvplan.engines.vllm.block_bounds import bounds_line
from glm_kvplan.show.format import three_digits, whole
from glm_kvplan.show.page import Cell, Code, Column, Line, Page, Row, Section, Table
from glm_kvplan.show.said import Said, say


def advise_page(answer: AdviseAnswer) -> Page:
    lead = (Line(answer.head.layout, "muted"), Line(memory_line(answer.memory)))
    sections = [Section("advice", tuple(_advice(answer)), say("Advice"), quiet=True)]
    if answer.options:
        sections.append(Section("options", (_options(answer),), say("What serves it"), quiet=True))
    verdict = load_verdict(answer.head, answer.demand, answer.now, advised=answer.holds)
    return Page(answer.head.title, lead, tuple(sections), answer.warnings, answer.head.notes, verdict=verdict)


def _advice(answer: AdviseAnswer) -> Iterator[Line | Code]:
    yield Line(
        _serves(answer, answer.now, say("as it is it serves")), "good" if not answer.flags and answer.holds else ""
    )
    if answer.flags:
        more = say("with this, on {gpus} GPUs, it does:", gpus=answer.options[0].gpus)
        yield Code(answer.text, say("with this it does:") if answer.holds else more)
        yield Line(_serves(answer, answer.served, say("then it serves")), "good")
    elif not answer.holds:
        yield Line(say("no flag nor two of those tried serve it, nor twice the GPUs up to 64"), "bad")
    yield Line(bounds_line(answer.blocks, estimated=answer.certainty == "estimated"))


def _serves(answer: AdviseAnswer, found: ServedNow, what: Said) -> Said:
    moved = answer.certainty == "estimated" and found.low != found.high
    shown = f"~{three_digits(found.requests)}" if moved else whole(found.requests)
    template = "{what} {requests} of {wanted}; ended by: {limit}"
    return say(template, what=what, requests=shown, wanted=whole(answer.demand.concurrency), limit=say(found.limit))


def _options(answer: AdviseAnswer) -> Table:
    columns = (
        Column(say("change"), "code"),
        Column(say("at once"), "count"),
        Column(say("longest context"), "count"),
        Column(say("GPUs"), "count"),
        Column(say("to know")),
    )
    return Table(columns, tuple(_row(option, answer) for option in answer.options))


def _row(option: Option, answer: AdviseAnswer) -> Row:
    known = []
    if option.accuracy:
        known.append(say("accuracy is yours to judge"))
    if option.estimated:
        known.append(say("its memory estimated"))
    about = option.estimated or answer.certainty == "estimated"
    limited = option.longest_context == answer.head.deployment["max_model_len"]  # not by the memory
    return Row(
        (
            option.text,
            Cell(option.requests, estimated=about),
            Cell(option.longest_context, estimated=about and not limited),
            option.gpus,
            Cell(say("{all}", all=tuple(known)) if known else "", "muted"),
        )
    )
