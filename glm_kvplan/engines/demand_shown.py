"""What is to be served at once, as an answer shows it: the same for every engine."""

from typing import NamedTuple

from glm_kvplan.workload import Demand


class DemandShown(NamedTuple):
    """What is to be served at once; `lengths` is how many context lengths there are.

    Of a mix `confidence` is the share of the time for which it is served when each request draws its length at random;
    0 asks for the mean alone. `prefix_states` are kept for each conversation.
    """

    concurrency: int
    lengths: int
    longest_context: int
    mean_context: float
    confidence: float
    prefix_states: int


def show_demand(demand: Demand) -> DemandShown:
    contexts = demand.contexts
    return DemandShown(
        demand.concurrency,
        len(contexts.lengths),
        contexts.longest,
        contexts.mean,
        contexts.confidence,
        demand.prefix_states,
    )
