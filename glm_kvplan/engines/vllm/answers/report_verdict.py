"""A report's answer in a sentence, and the remarks that belong to it."""

from collections.abc import Iterator

from glm_kvplan.engines.load_verdict import load_verdict
from glm_kvplan.engines.mix_words import contexts_said, promised
from glm_kvplan.engines.vllm.answers.report_answer import ReportAnswer
from glm_kvplan.show.format import whole
from glm_kvplan.show.page import Verdict
from glm_kvplan.show.said import Said, Text, say


def wanted(answer: ReportAnswer) -> Said:
    demand = answer.advised.demand
    template = "Wanted: {requests} requests at once, contexts of {contexts}."
    if demand.concurrency == 1:
        template = "Wanted: one request at a time, contexts of {contexts}."
    return say(template, requests=whole(demand.concurrency), contexts=contexts_said(demand))


def verdict(answer: ReportAnswer) -> Verdict:
    advised = answer.advised
    found = load_verdict(answer.head, advised.demand, advised.now, advised=advised.holds)
    return found._replace(remarks=tuple(_remarks(answer)))


def _remarks(answer: ReportAnswer) -> Iterator[Text]:
    start, served, advised = answer.start, answer.served, answer.advised
    if start.remedies:
        flags = tuple(each.text for each in start.remedies)
        template = "Each of these pairs lets it start: {flags}."
        if start.remedies[0].beside is None:
            template = "Each of these alone lets it start: {flags}."
        yield say(template, flags=flags)
    if start.holds and advised.now.serves(advised.demand):
        yield say(
            "{served} such requests fit at once; then ended by: {limit}.",
            served=whole(served.requests),
            limit=say(served.limit),
        )
    if start.holds and served.mixed:
        text = promised(served.confidence, served.mean_requests)
        yield say("{served} fit {promise}.", served=whole(served.requests), promise=text)
    if start.holds and start.certainty == "estimated":
        memory = start.memory
        error = f"±{(memory.high_bytes - memory.low_bytes) / 2 / (1 << 30):.1f} GiB"
        low, high = whole(served.low), whole(served.high)
        template = "The memory is estimated (to {error}): {low} to {high} requests fit within that."
        if low == high:
            template = "The memory is estimated (to {error}), and {low} requests fit all the same."
        yield say(template, error=error, low=low, high=high)
    if advised.flags:
        yield say(
            "With {flags} on {gpus} GPUs {served} such requests fit.",
            flags=advised.text,
            served=whole(advised.served.requests),
            gpus=advised.options[0].gpus,
        )
    elif not advised.holds:
        yield say("no flag nor two of those tried serve it, nor twice the GPUs up to 64")
    yield from (warning for warning in advised.warnings if warning not in answer.warnings)
