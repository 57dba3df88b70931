"""The page of `kvplan advise`: the flags to paste, the proof that they serve the demand, or what is short."""

from collections.abc import Iterator

from glm_kvplan.engines.flag_words import flag_word
from glm_kvplan.engines.load_verdict import search_line
from glm_kvplan.engines.mix_words import promised
from glm_kvplan.engines.sglang.answers.advise_answer import AdviseAnswer
from glm_kvplan.engines.sglang.answers.host_page import host_line
from glm_kvplan.engines.sglang.answers.judged_load import judged_load
from glm_kvplan.engines.sglang.answers.terms import terms
from glm_kvplan.engines.sglang.flags import FLAG
from glm_kvplan.memory.budget_words import at_most, bound_said, memory_line
from glm_kvplan.show.format import count, gib, whole
from glm_kvplan.show.page import Code, Column, Line, Page, Row, Section, Table, Tone, Verdict
from glm_kvplan.show.said import say
from glm_kvplan.units import GIB


def advise_page(answer: AdviseAnswer) -> Page:
    head = answer.head
    sections: list[Section] = []
    if answer.sizes is not None:
        words = "\n".join(flag_word(FLAG, name, value) for name, value in answer.flags.items())
        served = at_most(whole(answer.served.requests), answer.memory)
        wanted = whole(answer.demand.concurrency)
        intro = say("flags to add; they serve {served} of {wanted} at once:", served=served, wanted=wanted)
        blocks: tuple[Line | Code, ...] = (Code(words, intro), *_promise(answer))
        sections.append(Section(blocks, say("Flags to add"), quiet=True))
        last = 0 if answer.holds else 4
        sections.append(Section(tuple(_pools(answer)), say("The pools"), quiet=True, spare=last))
        sections.append(Section(tuple(_split(answer)), say("The engine's own split"), quiet=True, spare=2))
        sections.append(Section(tuple(_beside(answer)), say("Headroom"), quiet=True, spare=3))
    if answer.shortage is not None:
        sections.append(Section(tuple(_shortage(answer)), say("What is short"), quiet=True))
    hazards = () if answer.host is None else tuple(hazard.message for hazard in answer.host.hazards)
    return Page(
        head.title,
        (Line(head.layout, "muted"),),
        tuple(sections),
        (*answer.warnings, *hazards),
        head.notes,
        terms(head),
        verdict=_verdict(answer),
    )


def _verdict(answer: AdviseAnswer) -> Verdict:
    """Whether the demand is served, and how sure that is."""
    remarks = [memory_line(answer.memory)]
    if answer.memory.upper_bound:
        remarks.append(bound_said(answer.memory))
    return judged_load(answer)._replace(remarks=tuple(remarks))


def _promise(answer: AdviseAnswer) -> Iterator[Line]:
    """For how much of the time, and how far the memory's estimate moves it."""
    if answer.demand.lengths > 1:
        yield Line(promised(answer.demand.confidence, answer.mean_served))
    low, high = answer.served_span
    if low < high:
        template = "{low} to {high} within the memory's estimate (--pre-gib, --available-gib settle it)"
        yield Line(say(template, low=whole(low), high=whole(high)), "careful")


def _pools(answer: AdviseAnswer) -> Iterator[Line]:
    """What the engine sizes, between what the load needs and what memory gives."""
    sizes, floor = answer.sizes, answer.floor
    assert sizes is not None and floor is not None
    several = answer.head.deployment["attn_dp_size"] != 1
    yield Line(
        say(
            "the engine then sizes per DP worker {sizes}" if several else "the engine then sizes {sizes}",
            sizes=tuple(
                at_most(each, answer.memory)
                for each in (
                    count(sizes.tokens, "token"),
                    count(sizes.state_slots, "state slot"),
                    count(sizes.running_requests, "running request"),
                )
            ),
        )
    )
    yield Line(
        say(
            "the load needs {tokens}, {slots}; memory gives {ceiling}",
            tokens=count(floor.tokens, "token"),
            slots=count(floor.state_slots, "state slot"),
            ceiling=at_most(count(answer.ceiling_tokens, "token"), answer.memory),
        )
    )


def _split(answer: AdviseAnswer) -> Iterator[Line]:
    """What the flags are better for."""
    yield Line(
        say(
            "the engine's own split (tokens against states) would serve {served}, bound by {limit}",
            served=at_most(whole(answer.default_served.requests), answer.memory),
            limit=say(answer.default_served.limit),
        )
    )
    if answer.conversations_kept:
        kept = at_most(count(answer.conversations_kept, "finished conversation"), answer.memory)
        yield Line(say("keeps {conversations} cached on a worker", conversations=kept))


def _beside(answer: AdviseAnswer) -> Iterator[Line]:
    """What stays free for serving, and the host's pools."""
    headroom = answer.headroom
    yield Line(
        say(
            "{left} stay free on a GPU; serving takes ~{needed} of it (+-{unsure})",
            left=at_most(gib(headroom.free_bytes), answer.memory),
            needed=gib(headroom.needed_bytes),
            unsure=gib(headroom.unsure_bytes),
        ),
        _serving_tone(answer),
    )
    if (host := answer.host) is not None:
        available = None if host.fit is None else host.fit.available_bytes
        automatic = host.fullest.sizing == "automatic"
        yield host_line(max(host.bytes_by_host), available, fits=host.holds, at_most=automatic)


def _serving_tone(answer: AdviseAnswer) -> Tone:
    headroom = answer.headroom
    if headroom.free_bytes < headroom.needed_bytes:
        return "bad"
    return "good" if headroom.free_bytes >= headroom.needed_bytes + headroom.unsure_bytes else "careful"


def _shortage(answer: AdviseAnswer) -> Iterator[Line | Table]:
    shortage = answer.shortage
    assert shortage is not None
    template = "{requests} short, bound by {limit}"
    if shortage.missing_bytes is not None:
        template += "; {more} GiB more a rank would do"
    yield Line(
        say(
            template,
            requests=count(shortage.missing_requests, "request"),
            limit=say(shortage.limit),
            more=f"{(shortage.missing_bytes or 0) / GIB:,.1f}",
        ),
        "bad",
    )
    if not answer.layouts:
        yield Line(say("no layout nearby serves it all"))
        yield search_line(answer.head, answer.servers, estimated=answer.memory.estimated)
        return
    yield Line(say("layouts of one server that serve it all:"))
    columns = (Column(say("GPUs"), "count"), Column(say("flags"), "code"))
    found = [
        Row(
            (
                say("  {count} GPUs", count=nearby.gpus),
                say(
                    "{flags} (its memory estimated)" if nearby.estimated else "{flags}",
                    flags=" ".join(flag_word(FLAG, name, value) for name, value in nearby.changes.items()),
                ),
            )
        )
        for nearby in answer.layouts
    ]
    yield Table(columns, tuple(found), head=False)
    yield search_line(answer.head, answer.servers, estimated=answer.memory.estimated)
