"""What a deployment serves of a load as it is launched."""

from glm_kvplan.engines.load_verdict import ServedNow, refuses
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.sizing.frontier import fits
from glm_kvplan.engines.sglang.sizing.served_requests import served
from glm_kvplan.engines.sglang.sizing.start import Boot
from glm_kvplan.show.said import say
from glm_kvplan.workload import Demand


def served_now(plan: Plan, found: Boot, demand: Demand) -> ServedNow:
    """The demand in the pools of a start."""
    if found.failure is not None:
        return ServedNow(0, 0, 0, "memory", refuses(str(found.failure)))
    assert found.headroom is not None
    now = fits(plan, found, demand)
    low, high = (0 if end is None else served(demand, plan.deployment, end).requests for end in found.span)
    failure = None
    if found.headroom.verdict == "short":
        failure = found.headroom.message
    elif now.requests >= demand.concurrency and found.host is not None and not found.host.fits:
        failure = say("the host's memory does not hold the HiCache pools")
    return ServedNow(now.requests, low, high, now.limit, failure, found.headroom.verdict == "tight")
