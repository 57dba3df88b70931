"""A report's answer in a sentence, and the remarks that belong to it."""

from collections.abc import Iterator

from glm_kvplan.engines.flag_words import flag_word
from glm_kvplan.engines.mix_words import contexts_said, promised
from glm_kvplan.engines.sglang.answers.judged_load import judged_load
from glm_kvplan.engines.sglang.answers.report_answer import ReportAnswer
from glm_kvplan.engines.sglang.flags import FLAG
from glm_kvplan.memory.budget_words import at_most, bound_said
from glm_kvplan.show.format import whole
from glm_kvplan.show.page import Verdict
from glm_kvplan.show.said import Said, say


def wanted(answer: ReportAnswer) -> Said:
    demand = answer.demand
    template = "Wanted: {requests} requests at once, contexts of {contexts}."
    if demand.concurrency == 1:
        template = "Wanted: one request at a time, contexts of {contexts}."
    if demand.prefix_states:
        template = "Wanted: {requests} requests at once, contexts of {contexts}, {states} prefix states each."
    return say(
        template,
        requests=whole(demand.concurrency),
        contexts=contexts_said(demand),
        states=whole(demand.prefix_states),
    )


def verdict(answer: ReportAnswer) -> Verdict:
    return judged_load(answer.advised)._replace(remarks=tuple(_remarks(answer)))


def _remarks(answer: ReportAnswer) -> Iterator[Said]:
    start = answer.start
    if start.memory.upper_bound:
        yield say("{text}.", text=bound_said(start.memory))
    if start.remedies:
        flags = ", ".join(remedy.text for remedy in start.remedies)
        yield say("Each of these alone lets it start: {flags}.", flags=flags)
    if start.failure is None and answer.demand.lengths > 1:
        text = promised(answer.demand.confidence, answer.mean_served)
        yield say("{served} fit {promise}.", served=whole(answer.served.requests), promise=text)
    if start.headroom is not None and start.headroom.verdict != "short":
        yield say("Tight: {text}." if start.headroom.verdict == "tight" else "{text}.", text=start.headroom.message)
    if start.failure is None and start.memory.how != "measured" and not start.memory.upper_bound:
        low, high = map(whole, answer.span)
        template = "The memory is estimated (to {error}): {low} to {high} requests fit within that."
        if low == high:
            template = "The memory is estimated (to {error}), and {low} requests fit all the same."
        yield say(template, error=f"±{max(start.memory.error_gib, 0.1):.1f} GiB", low=low, high=high)
    if answer.advised.now.serves(answer.demand):
        return
    advised, asked = answer.advised, answer.demand.concurrency
    if advised.sizes is None:
        yield say("No flags on this layout serve one such request.")
    elif start.failure is not None or answer.served.requests < asked or advised.holds:
        served = at_most(whole(advised.served.requests), start.memory)
        yield say("With the flags at the end {served} of {wanted} fit.", served=served, wanted=whole(asked))
    for layout in advised.layouts[:1]:
        flags = " ".join(flag_word(FLAG, name, value) for name, value in layout.changes.items())
        template = "A layout of one server that serves them all: {gpus} GPUs, {flags}."
        yield say(template, gpus=whole(layout.gpus), flags=flags)
