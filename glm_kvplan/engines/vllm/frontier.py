"""How many requests fit at once at every context length, what stops the next one, and what changed flags would hold."""

from collections.abc import Mapping

from glm_kvplan.contexts import one_length
from glm_kvplan.engines.frontier_points import Frontier, FrontierPoint, lengths
from glm_kvplan.engines.vllm.served_requests import served
from glm_kvplan.engines.vllm.starting import Begun, begin
from glm_kvplan.errors import KvplanError
from glm_kvplan.memory.given import MemoryGiven

FEWER_STATES: Mapping[str, object] = {"enable_prefix_caching": False}


def frontier(begun: Begun, given: MemoryGiven, flags: Mapping[str, object]) -> Frontier:
    """The frontier of a plan that starts; `advised` counts are those with `flags` changed, the plan's where these do
    not start.
    """
    then = begun
    if flags:
        try:
            then = begin(begun.plan.with_flags(**flags), given, begun.plan)
        except KvplanError:
            then = begun

    def point(length: int) -> FrontierPoint:
        mix = one_length(length)
        now = served(begun.start, mix)
        return FrontierPoint(length, now.requests, now.limit, served(then.start, mix).requests)

    return Frontier(tuple(map(point, lengths(begun.start.max_model_len))))
