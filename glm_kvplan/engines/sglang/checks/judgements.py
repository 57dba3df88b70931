"""What comes of each expectation: wanted, found, and the limit that binds."""

from glm_kvplan.contexts import Contexts
from glm_kvplan.engines.expectations import Expectations, Judgement
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.sizing.binding_limits import Limits
from glm_kvplan.engines.sglang.sizing.served_requests import Served, served
from glm_kvplan.engines.sglang.sizing.start import Boot
from glm_kvplan.units import GIB, LARGEST_COUNT
from glm_kvplan.workload import Demand


def judge(expect: Expectations, plan: Plan, answer: Boot) -> dict[str, Judgement]:
    """Every expectation of GPU memory by name; `boots` alone where the engine does not start.

    `host_memory` is judged apart (checks/host_memory.py): it concerns the machine, not the GPU.
    """
    found = [_boots(answer)]
    if answer.failure is None:
        assert answer.limits is not None
        deployment, sizes = plan.deployment, answer.solution.sizes
        for name, figure in figures(expect, deployment, sizes).items():
            wanted = getattr(expect, name)
            limit, why = _limit(name, expect, deployment, sizes, answer.limits)
            at_most, unsure = answer.budget.upper_bound, _moves(name, figure, expect, deployment, answer)
            judgement = Judgement(name, figure >= wanted, wanted, figure, limit, why, at_most=at_most, estimated=unsure)
            found.append(judgement)
        if expect.headroom is not None:
            found.append(_headroom(expect.headroom, deployment, answer))
    return {judgement.name: judgement for judgement in found}


def figures(expect: Expectations, deployment: Deployment, sizes: PoolSizes) -> dict[str, int]:
    """What pools of these sizes give for each expectation of sizes that is set."""
    workers = deployment.attn_dp_size * deployment.replicas
    found = {}
    if expect.min_context is not None:
        found["min_context"] = longest_context(deployment, sizes)
    if expect.min_concurrency is not None:
        found["min_concurrency"] = resident(expect.lengths, deployment, sizes).requests
    if expect.min_total_tokens is not None:
        found["min_total_tokens"] = sizes.tokens * workers
    if expect.max_running_requests is not None:
        found["max_running_requests"] = sizes.running_requests * workers
    return found


def _moves(name: str, figure: int, expect: Expectations, deployment: Deployment, answer: Boot) -> bool:
    """Whether something else comes out at an end of the memory's estimate."""
    ends = (None if sizes is None else figures(expect, deployment, sizes)[name] for sizes in answer.span)
    return any(end != figure for end in ends)


def short(expect: Expectations, deployment: Deployment, sizes: PoolSizes | None) -> list[str]:
    """The expectations of sizes that pools of these sizes do not meet; None: the engine does not start."""
    if sizes is None:
        return ["boots"]
    return [name for name, found in figures(expect, deployment, sizes).items() if found < getattr(expect, name)]


def longest_context(deployment: Deployment, sizes: PoolSizes) -> int:
    """Tokens of the longest single request (prompt and output) that a worker's pool and the server admit."""
    return max(0, min(deployment.context_length, sizes.tokens - max(deployment.decode_reserve, 1)))


def resident(lengths: Contexts, deployment: Deployment, sizes: PoolSizes) -> Served:
    """How many requests of such lengths the whole deployment holds at once."""
    return served(Demand(lengths, LARGEST_COUNT), deployment, sizes)


def _boots(answer: Boot) -> Judgement:
    if answer.failure is not None:
        kind = answer.failure.kind.replace("_", " ")
        return Judgement("boots", False, "starts", "refused", kind, str(answer.failure))
    assert answer.map is not None and answer.headroom is not None
    if answer.map.usable < 0:
        return Judgement("boots", False, "starts", "out of memory", "memory", str(answer.headroom.message))
    return Judgement("boots", True, "starts", "starts", "", "")


def _limit(
    name: str, expect: Expectations, deployment: Deployment, sizes: PoolSizes, limits: Limits
) -> tuple[str, str]:
    """What binds an expectation of sizes, and its arithmetic."""
    tokens, requests = limits.tokens[0], limits.requests[0]
    if name == "min_context" and longest_context(deployment, sizes) == deployment.context_length:
        return "context_length", f"the server admits {deployment.context_length:,} tokens a request"
    if name == "max_running_requests":
        return requests.name, requests.text
    if name == "min_concurrency":
        bound = resident(expect.lengths, deployment, sizes).limit
        if bound == "context length":
            return "context_length", f"the server admits {deployment.context_length:,} tokens a request"
        if bound == "running requests":
            return requests.name, requests.text
        if bound == "state slots":
            return f"state slots ({limits.slots.name})", limits.slots.text
    return f"tokens ({tokens.name})", tokens.text


def _headroom(wanted: float | str, deployment: Deployment, answer: Boot) -> Judgement:
    assert answer.map is not None and answer.headroom is not None
    verdict = answer.headroom
    at_most = answer.budget.upper_bound
    if isinstance(wanted, str):
        return Judgement(
            "headroom", verdict.verdict != "short", wanted, verdict.verdict, "memory", str(verdict.message)
        )
    unallocated = answer.map.unallocated / GIB
    why = (
        f"mem_fraction_static {deployment.mem_fraction_static:g} keeps {answer.solution.slack_gib:.2f} GiB out of the "
        f"budget; the pools take {answer.map.uncharged / GIB:.2f} GiB that it does not charge"
    )
    return Judgement(
        "headroom",
        unallocated >= wanted,
        wanted,
        round(unallocated, 2),
        "mem_fraction_static",
        why,
        at_most=at_most,
        estimated=answer.certainty == "estimated",
    )
