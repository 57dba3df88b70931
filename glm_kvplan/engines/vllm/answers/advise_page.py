"""The page of `kvplan advise` of a vLLM launch: what to type, what it serves then, and what else would."""

from glm_kvplan.engines.load_verdict import ServedNow, load_verdict, search_line
from glm_kvplan.engines.vllm.answers.advise_answer import AdviseAnswer, Option
from glm_kvplan.engines.vllm.answers.memory_lines import bounds_line, memory_line
from glm_kvplan.engines.vllm.answers.terms import terms
from glm_kvplan.show.format import three_digits, whole
from glm_kvplan.show.page import Cell, Code, Column, Line, Page, Row, Section, Table, Verdict
from glm_kvplan.show.said import say


def advise_page(answer: AdviseAnswer) -> Page:
    sections = []
    if answer.flags:
        template = "flags to change; up to {most} of them fit then, bound by {limit}:"
        if not answer.holds:
            template = "flags to change, with {gpus} GPUs; up to {most} of them fit then, bound by {limit}:"
        found = answer.served
        gpus, most = answer.options[0].gpus, _about(answer, found)
        intro = say(template, gpus=gpus, most=most, limit=say(found.limit))
        sections.append(Section((Code(answer.text, intro),), say("Advice"), quiet=True))
    elif not answer.holds:
        line = Line(say("no flag nor two of those tried serve it, nor twice the GPUs up to 64"), "bad")
        sections.append(Section((line,), say("Advice"), quiet=True))
    bounds = Line(bounds_line(answer.blocks, estimated=answer.certainty == "estimated"))
    sections.append(Section((bounds,), say("Blocks"), quiet=True, spare=2))
    if answer.options:
        sections.append(Section((_options(answer),), say("What serves it"), quiet=True, spare=1))
    if not answer.holds:
        sections.append(Section((search_line(answer.head),), say("More GPUs"), quiet=True))
    lead = (Line(answer.head.layout, "muted"),)
    head = answer.head
    return Page(head.title, lead, tuple(sections), answer.warnings, head.notes, terms(), verdict=_verdict(answer))


def _verdict(answer: AdviseAnswer) -> Verdict:
    remarks = [memory_line(answer.memory)]
    if answer.holds and not answer.flags:
        template = "up to {most} of them fit, bound by {limit}"
        remarks.insert(0, say(template, most=_about(answer, answer.now), limit=say(answer.now.limit)))
    verdict = load_verdict(answer.head, answer.demand, answer.now, advised=answer.holds)
    return verdict._replace(remarks=tuple(remarks))


def _about(answer: AdviseAnswer, found: ServedNow) -> str:
    moved = answer.certainty == "estimated" and found.low != found.high
    return f"~{three_digits(found.requests)}" if moved else whole(found.requests)


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
