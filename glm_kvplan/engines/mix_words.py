"""Context lengths in words, and what is promised of a mix of them: for how much of the time, beside it the mean."""

from glm_kvplan.contexts import Contexts
from glm_kvplan.engines.demand_shown import DemandShown
from glm_kvplan.show.format import count, whole
from glm_kvplan.show.said import Said, Text, say


def promised(confidence: float, mean: int | tuple[Text, ...]) -> Said:
    """What follows a number of requests at once, or what they take; `mean` is the same by the mean."""
    if not confidence:
        return say("by the mean: lengths that come by chance need more half of the time")
    return say(
        "{share} of the time, each request's length drawn by chance; {mean} by the mean",
        share=f"{100 * confidence:g}%",
        mean=whole(mean) if isinstance(mean, int) else mean,
    )


def held_of(mix: Contexts, mean: int) -> Said:
    """A note beside the requests that a check holds of a mix."""
    return say("min_concurrency of {contexts}: {promised}", contexts=mix.text, promised=promised(mix.confidence, mean))


def wanted_line(demand: DemandShown) -> Said:
    """What was asked for."""
    return say(
        "wanted: {requests} at once, contexts of {contexts}",
        requests=count(demand.concurrency, "request"),
        contexts=contexts_said(demand),
    )


def contexts_said(demand: DemandShown) -> Said | str:
    """The context lengths of a workload: one, or how many and how long."""
    if demand.lengths == 1:
        return count(demand.longest_context, "token")
    return say(
        "{count} lengths up to {longest} tokens, {mean} on average",
        count=demand.lengths,
        longest=whole(demand.longest_context),
        mean=f"{demand.mean_context:,.0f}",
    )
