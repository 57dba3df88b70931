"""How many requests run at once: of one context or of a mix, and what ends it."""

from typing import NamedTuple

from glm_kvplan.bisection import largest_unbounded
from glm_kvplan.contexts import Contexts
from glm_kvplan.engines.vllm.start import Start
from glm_kvplan.errors import InputError
from glm_kvplan.workload import Demand


class Served(NamedTuple):
    """Requests at once in the whole deployment. `per_engine` are one engine's; `limit` is what ends them."""

    requests: int
    per_engine: int
    limit: str  # "blocks", "--max-num-seqs", "--max-model-len" or "the start fails"


def served(start: Start, contexts: Contexts) -> Served:
    """Requests of `contexts` that the blocks hold at once, none of them short of its own."""
    deployment = start.blocks.rank.deployment
    if start.failure is not None:
        return Served(0, 0, "the start fails")
    if contexts.longest > start.max_model_len:
        return Served(0, 0, "--max-model-len")
    one = held(start, contexts)
    if one >= deployment.max_num_seqs:
        one = deployment.max_num_seqs
        return Served(one * deployment.data_parallel_size, one, "--max-num-seqs")
    return Served(one * deployment.data_parallel_size, one, "blocks")


def held(start: Start, contexts: Contexts) -> int:
    """Requests that the blocks of one engine hold at once, whatever its limits say."""
    if len(contexts.lengths) == 1:
        return start.usable // start.blocks.needed(contexts.longest)
    return largest_unbounded(lambda requests: blocks_of_mix(start, contexts, requests) <= start.usable) or 0


def refuse_prefix_states(demand: Demand) -> None:
    """Refuse what blocks are not kept for. Raises InputError."""
    if demand.prefix_states:
        raise InputError("--prefix-states: vLLM keeps states of prefixes in blocks that nobody needs; leave it out")


def blocks_of_mix(start: Start, contexts: Contexts, requests: int) -> int:
    """Blocks that `requests` requests hold at once in one engine."""
    return contexts.total(requests, start.blocks.needed)
