"""A start of vLLM in the words that every engine has: what `kvplan diff` compares."""

from collections.abc import Iterator

from glm_kvplan.contexts import Contexts, one_length
from glm_kvplan.engines.ledger import Ledger
from glm_kvplan.engines.measures import Bound, Measure, Started
from glm_kvplan.engines.vllm.components import ledgers
from glm_kvplan.engines.vllm.plan import Plan
from glm_kvplan.engines.vllm.request_cost import fixed_cost, request_cost, token_bytes
from glm_kvplan.engines.vllm.served_requests import served
from glm_kvplan.engines.vllm.starting import Begun, begin
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.units import GIB


def started(
    plan: Plan, given: MemoryGiven, context: int, prompt: int | None = None, mix: Contexts | None = None
) -> Started:
    """Start `plan` with this memory. Requests are counted at `context` tokens and of `mix`.

    A prompt moves nothing here.

    Raises InputError for memory that is unknown or cannot be, RefusedError where less is free than vLLM takes.
    """
    begun = begin(plan, given)
    failure = begun.start.failure
    return Started(
        context,
        None if failure is None else failure.reason,
        (*_shared(begun, context, mix), *_own(begun)),
        {} if failure is not None else _parts(begun),
        tuple(_bounds(begun, context)),
        _ledgers(plan, context),
        begun.certainty,
        begun.notes,
    )


def _shared(begun: Begun, context: int, mix: Contexts | None) -> Iterator[Measure]:
    plan, start = begun.plan, begun.start
    yield Measure("gpus", plan.gpus, "GPU", "deployment")
    if mix is not None:
        yield Measure("requests_of_mix", served(start, mix).requests, "request", "deployment")
    yield Measure("requests_at_context", served(start, one_length(context)).requests, "request", "deployment")
    longest = start.longest_context if start.failure is None else 0
    yield Measure("longest_context", longest, "token", "deployment")
    cached = start.count * plan.blocks.nbytes * plan.gpus if start.failure is None else 0
    yield Measure("cache_bytes", cached, "byte", "deployment")
    yield Measure("token_bytes", token_bytes(plan.blocks), "byte", "GPU")
    yield Measure("request_bytes", request_cost(plan.blocks, context).nbytes, "byte", "GPU")
    yield Measure("fixed_bytes", fixed_cost(plan.blocks).nbytes, "byte", "GPU")


def _own(begun: Begun) -> Iterator[Measure]:
    """The numbers of the boot line, and what is behind them."""
    start, blocks = begun.start, begun.plan.blocks
    starts = start.failure is None
    yield Measure("num_gpu_blocks", start.count if starts else 0, "block", "GPU")
    yield Measure("block_size", blocks.size, "token", "GPU")
    yield Measure("block_bytes", blocks.nbytes, "byte", "GPU")
    yield Measure("blocks of a request before its first token", blocks.fixed, "block", "GPU")
    yield Measure("printed cache tokens", start.printed_tokens if starts else 0, "token", "worker")


def _parts(begun: Begun) -> dict[str, int]:
    """What is taken before the blocks, as far as it is known, and the blocks."""
    taken = {part.name: int(-part.gib * GIB) for part in begun.memory.parts if part.gib < 0}
    return {**taken, "blocks": begun.start.count * begun.plan.blocks.nbytes}


def _bounds(begun: Begun, context: int) -> Iterator[Bound]:
    if begun.start.failure is None:
        limit = served(begun.start, one_length(context)).limit
        yield Bound("requests bound by", limit, f"at {context:,} tokens each")


def _ledgers(plan: Plan, context: int) -> tuple[Ledger, ...]:
    states = plan.deployment.states_per_request
    return ledgers(plan.rank, tokens=context, states=states, requests=1)
