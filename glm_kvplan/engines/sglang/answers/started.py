"""A start of SGLang in the words that every engine has: what `kvplan diff` compares."""

from collections.abc import Iterator

from glm_kvplan.contexts import Contexts, one_length
from glm_kvplan.engines.measures import Bound, Measure, Started
from glm_kvplan.engines.sglang.checks.judgements import longest_context, resident
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.sizing.server import Server
from glm_kvplan.engines.sglang.sizing.start import Boot, boot
from glm_kvplan.engines.sglang.sizing.workload_cost import Estimate, estimate
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.workload import Workload


def started(
    plan: Plan, given: MemoryGiven, context: int, prompt: int | None = None, mix: Contexts | None = None
) -> Started:
    """Start `plan` with this memory. Requests are counted at `context` tokens and of `mix`.

    `prompt` is the longest to serve.

    Raises InputError for memory that is unknown or cannot be, RefusedError where the engine refuses the flags.
    """
    answer = boot(plan, given, prompt)
    cost = estimate(plan, Workload(context, 1))
    return Started(
        context,
        None if answer.failure is None else str(answer.failure),
        (*_shared(plan, given, answer, cost, context, mix), *_own(plan, answer)),
        {} if answer.map is None else {segment.name: segment.nbytes for segment in answer.map.segments},
        tuple(_bounds(plan, answer, context)),
        cost.stages[answer.stage].ledgers,
        answer.certainty,
        tuple(answer.weight_notes),
    )


def _sizes(answer: Boot) -> PoolSizes:
    """Of a start that is refused none, which serve nobody."""
    return answer.solution.sizes if answer.failure is None else PoolSizes(0, 0, 0)


def _shared(
    plan: Plan, given: MemoryGiven, answer: Boot, cost: Estimate, context: int, mix: Contexts | None
) -> Iterator[Measure]:
    deployment, sizes, rank = plan.deployment, _sizes(answer), cost.stages[answer.stage]
    yield Measure("gpus", plan.gpus, "GPU", "deployment")
    if mix is not None:
        yield Measure("requests_of_mix", resident(mix, deployment, sizes).requests, "request", "deployment")
    requests = resident(one_length(context), deployment, sizes).requests
    yield Measure("requests_at_context", requests, "request", "deployment")
    yield Measure("longest_context", longest_context(deployment, sizes), "token", "deployment")
    cached = Server(plan, given).cache_bytes if answer.failure is None else 0
    yield Measure("cache_bytes", cached, "byte", "deployment")
    yield Measure("token_bytes", rank.unit_bytes["token"], "byte", "GPU")
    yield Measure("request_bytes", sum(rank.request_bytes(cost.request_tokens).values()), "byte", "GPU")
    yield Measure("fixed_bytes", sum(rank.request_bytes(0).values()), "byte", "GPU")


def _own(plan: Plan, answer: Boot) -> Iterator[Measure]:
    """What the engine prints, a DP worker's, and what all workers have together."""
    sizes = _sizes(answer)
    workers = plan.deployment.attn_dp_size * plan.deployment.replicas
    yield Measure("max_total_num_tokens", sizes.tokens, "token", "worker")
    yield Measure("max_mamba_cache_size", sizes.state_slots, "state slot", "worker")
    yield Measure("max_running_requests", sizes.running_requests, "request", "worker")
    if workers > 1:
        yield Measure("tokens of all workers", sizes.tokens * workers, "token", "deployment")
        yield Measure("requests of all workers", sizes.running_requests * workers, "request", "deployment")


def _bounds(plan: Plan, answer: Boot, context: int) -> Iterator[Bound]:
    """Which limit binds requests of the context, tokens, running requests and slots, and whether what stays free is
    enough.
    """
    if answer.limits is None or answer.headroom is None:
        return
    limit = resident(one_length(context), plan.deployment, _sizes(answer)).limit
    yield Bound("requests bound by", limit, f"at {context:,} tokens each")
    tokens, requests, slots = answer.limits.tokens[0], answer.limits.requests[0], answer.limits.slots
    yield Bound("tokens bound by", tokens.name, tokens.text)
    yield Bound("running requests bound by", requests.name, requests.text)
    yield Bound("state slots bound by", slots.name, slots.text)
    yield Bound("headroom", answer.headroom.verdict, str(answer.headroom.message))
