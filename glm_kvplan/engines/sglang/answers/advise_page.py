"""The page of `kvplan advise`: the flags to paste, the proof that they serve the demand, or what is short."""

from collections.abc import Iterator

from glm_kvplan.engines.flag_words import flag_word
from glm_kvplan.engines.mix_words import promised
from glm_kvplan.engines.sglang.answers.advise_answer import AdviseAnswer
from glm_kvplan.engines.sglang.answers.host_page import host_line
from glm_kvplan.engines.sglang.answers.judged_load import judged_load
from glm_kvplan.engines.sglang.flags import FLAG
from glm_kvplan.memory.budget_words import at_most, bound_said, memory_line
from glm_kvplan.show.format import count, gib, whole
from glm_kvplan.show.page import Code, Column, Line, Page, Row, Section, Table
from glm_kvplan.show.said import say
from glm_kvplan.units import GIB


def advise_page(answer: AdviseAnswer) -> Page:
    head = answer.head
    lead = [Line(head.layout, "muted"), Line(memory_line(answer.memory))]
    if answer.memory.upper_bound:
        lead.append(Line(bound_said(answer.memory), "careful"))
    sections: list[Section] = []
    if answer.sizes is not None:
        words = "\n".join(flag_word(FLAG, name, value) for name, value in answer.flags.items())
        sections.append(Section("flags", (Code(words, say("flags to add:")),), say("Flags to add"), quiet=True))
        sections.append(Section("proof", tuple(_proof(answer)), say("What they serve"), quiet=True))
    if answer.shortage is not None:
        sections.append(Section("shortage", tuple(_shortage(answer)), say("What is short"), quiet=True))
    hazards = () if answer.host is None else tuple(hazard.message for hazard in answer.host.hazards)
    verdict = judged_load(answer)
    return Page(head.title, tuple(lead), tuple(sections), (*answer.warnings, *hazards), head.notes, verdict=verdict)


def _proof(answer: AdviseAnswer) -> Iterator[Line]:
    sizes, wanted = answer.sizes, answer.demand.concurrency
    assert sizes is not None
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
            "serves {served} of {wanted} at once",
            served=at_most(whole(answer.served.requests), answer.memory),
            wanted=count(wanted, "request"),
        ),
        "good" if answer.holds else "careful",
    )
    if answer.demand.lengths > 1:
        yield Line(promised(answer.demand.confidence, answer.mean_served))
    low, high = answer.served_span
    if low < high:
        yield Line(
            say(
                "{low} to {high} within the memory's estimate; --pre-gib and --available-gib of a boot log settle it",
                low=whole(low),
                high=whole(high),
            ),
            "careful",
        )
    if answer.conversations_kept:
        kept = at_most(count(answer.conversations_kept, "finished conversation"), answer.memory)
        yield Line(say("keeps {conversations} cached on a worker", conversations=kept))
    headroom = answer.headroom
    enough = headroom.free_bytes >= headroom.needed_bytes
    tone = (
        "good"
        if headroom.free_bytes >= headroom.needed_bytes + headroom.unsure_bytes
        else "careful"
        if enough
        else "bad"
    )
    yield Line(
        say(
            "{left} stay free; serving takes ~{needed} of it, estimated to {unsure}",
            left=at_most(gib(headroom.free_bytes), answer.memory),
            needed=gib(headroom.needed_bytes),
            unsure=gib(headroom.unsure_bytes),
        ),
        tone,
    )
    if (host := answer.host) is not None:
        available = None if host.fit is None else host.fit.available_bytes
        automatic = host.fullest.sizing == "automatic"
        yield host_line(max(host.bytes_by_host), available, fits=host.holds, at_most=automatic)


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
        return
    yield Line(say("the nearest layouts that serve it all:"))
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
