"""One point of a sweep: what `solve` says of a launch, without the ends of its estimate and the words."""

from typing import Any, NamedTuple

from glm_kvplan.certainty import Certainty
from glm_kvplan.engines.sweep_columns import COMMON, Column
from glm_kvplan.engines.vllm.plan import Plan
from glm_kvplan.engines.vllm.request_cost import token_bytes
from glm_kvplan.engines.vllm.served_requests import served
from glm_kvplan.engines.vllm.start import Start
from glm_kvplan.engines.vllm.starting import memory_of, start_with
from glm_kvplan.errors import InputError, RefusedError
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.show.said import Said, say
from glm_kvplan.units import GIB
from glm_kvplan.workload import Demand

CONTEXT_FLAG = "max_model_len"
ADVICE: dict[Certainty, Said] = {
    "estimated": say("memory is estimated: --available-gib, as the log prints it, makes the blocks exact")
}
COLUMNS = (
    *COMMON,
    Column("num_blocks", "int", "blocks it has", "GPU", say("blocks per GPU")),
    Column("block_size", "int", "tokens of a block", "GPU"),
    Column("block_bytes", "int", "bytes of one block", "GPU"),
    Column("request_blocks", "int", "blocks of one at the workload's longest context", "request"),
    Column("fixed_blocks", "int", "blocks of one before its first token", "request", say("fixed per request"), 3),
    Column("printed_tokens", "int", "what the boot line calls the cache size", "worker", say("printed tokens"), 2),
    Column("printed_concurrency", "float", "what the boot line calls maximum concurrency", "worker"),
    Column("max_num_seqs", "int", "requests one engine runs at once, at most", "worker"),
    Column("available_bytes", "int", "bytes that become blocks", "GPU"),
    Column("available_gib", "float", "available_bytes in GiB", "GPU", say("GiB per GPU"), 1),
)


class Point(NamedTuple):
    """A launch that starts (see `sweep_columns.Point`)."""

    plan: Plan
    start: Start
    available: int
    certainty: Certainty

    @property
    def context_length(self) -> int:
        return self.start.max_model_len

    def values(self, demand: Demand) -> tuple[Any, ...]:
        begun, plan = self.start, self.plan
        blocks, deployment = plan.blocks, plan.deployment
        requests, limit = _served(begun, demand)
        needed = blocks.needed(demand.contexts.longest)
        return (
            plan.gpus,
            requests,
            requests / plan.gpus,
            limit,
            begun.longest_context,
            needed * blocks.nbytes,
            blocks.fixed * blocks.nbytes,
            token_bytes(blocks),
            begun.count * blocks.nbytes * plan.gpus,
            self.certainty,
            begun.count,
            blocks.size,
            blocks.nbytes,
            needed,
            blocks.fixed,
            begun.printed_tokens,
            begun.concurrency,
            deployment.max_num_seqs,
            self.available,
            self.available / GIB,
        )


def _served(begun: Start, demand: Demand) -> tuple[int, str]:
    """Requests of the demand at once in the whole deployment, and what stops one more."""
    if demand.prefix_states:
        raise InputError("prefix_states are not planned for this engine: its prefixes stay in blocks; leave them out")
    found = served(begun, demand.contexts)
    if found.requests >= demand.concurrency:
        return demand.concurrency, "concurrency"
    return found.requests, found.limit


def size_point(plan: Plan, given: MemoryGiven, prompt_tokens: int | None) -> Point:
    """Start `plan` with this memory; a prompt moves nothing after the start.

    Raises RefusedError where the start fails, InputError for memory that is not known or cannot be.
    """
    memory, _ = memory_of(plan, given)
    begun = start_with(plan, memory, memory.nbytes)
    if begun.failure is not None:
        raise RefusedError(begun.failure.reason, begun.failure.source)
    return Point(plan, begun, memory.nbytes, memory.certainty)
