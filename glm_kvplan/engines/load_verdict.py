"""Whether a load is served as launched, with other flags on the same GPUs, or not: one sentence for all that judge."""

from collections.abc import Callable
from typing import NamedTuple

from glm_kvplan.engines.answer_head import Head
from glm_kvplan.engines.demand_shown import DemandShown
from glm_kvplan.engines.mix_words import contexts_said
from glm_kvplan.engines.report_parts import gpus_said
from glm_kvplan.show.format import whole
from glm_kvplan.show.page import Line, Verdict
from glm_kvplan.show.said import Said, Text, say


class ServedNow(NamedTuple):
    """Requests of a load that are served at once in the whole deployment, what they may be, and what ends them.

    `failure`: why none of them counts: no start, no first long prompt, no host pools. `tight`: little stays free.
    """

    requests: int
    low: int
    high: int
    limit: str
    failure: Text | None = None
    tight: bool = False

    def serves(self, demand: DemandShown) -> bool:
        return self.failure is None and self.requests >= demand.concurrency


def refuses(reason: str) -> Said:
    """The failure of an engine that does not start."""
    return say("the engine refuses to start: {reason}", reason=reason)


def search_line(head: Head, servers: int | None = None, *, estimated: bool = False) -> Line:
    """Where no flags serve a load on these GPUs: what looks further, and how many servers do with the same flags."""
    template, option = (
        "{option} searches layouts of TP and DP on N GPUs where none is given, and servers side by side",
        "--gpus N",
    )
    if servers is not None:
        template += "; {servers} of them with these flags, {gpus} GPUs, serve it all"
        template += " at the middle of the memory's estimate" * estimated
    return Line(say(template, option=option, servers=servers, gpus=head.gpus * (servers or 0)), "muted")


def load_verdict(
    head: Head,
    demand: DemandShown,
    now: ServedNow,
    *,
    advised: bool,
    known: bool = True,
    number: Callable[[str], Text] = str,
) -> Verdict:
    """The verdict of a load: served as launched (`now`), by the flags that are advised for the same GPUs, or not.

    `known` False: something of the memory is not known, and all is an upper bound; `number` says a number then.
    """
    asked = demand.concurrency
    given = {
        "wanted": whole(asked),
        "served": number(whole(now.requests)),
        "contexts": contexts_said(demand),
        "gpus": gpus_said(head),
        "limit": say(now.limit),
    }
    if now.serves(demand):
        template = "Yes: {wanted} requests, contexts of {contexts}, fit at once on {gpus}."
        if asked == 1:
            template = "Yes: one request at a time, contexts of {contexts}, fits on {gpus}."
        if not known:
            template = "At most: {wanted} requests, contexts of {contexts}, fit at once on {gpus}, as far as is known."
        tight = now.tight or now.low < asked or not known
        return Verdict(say(template, **given), "careful" if tight else "good")
    if advised:
        here = say("{served} of {wanted}, bound by {limit}", **given) if now.failure is None else now.failure
        template = (
            "Yes, with other flags: {wanted} requests, contexts of {contexts}, fit at once on {gpus}; now: {here}."
        )
        if asked == 1:
            template = (
                "Yes, with other flags: one request at a time, contexts of {contexts}, fits on {gpus}; now: {here}."
            )
        return Verdict(say(template, **given, here=here), "careful")
    if now.failure is not None:
        return Verdict(say("No: {reason}.", reason=now.failure), "bad")
    template = "No: {served} of {wanted} requests, contexts of {contexts}, fit at once on {gpus}, bound by {limit}."
    return Verdict(say(template, **given), "bad")
