"""Layouts of one server, and what each serves of its share of a load: what vLLM gives to `kvplan advise --gpus`."""

from collections.abc import Iterator, Mapping
from itertools import chain
from typing import Any

from glm_kvplan.engines.fleet_values import Advised
from glm_kvplan.engines.vllm.block_bounds import FIXES_BLOCKS, block_bounds
from glm_kvplan.engines.vllm.moves import HIGHEST_UTILIZATION, UTILIZATION_STEP
from glm_kvplan.engines.vllm.plan import Plan
from glm_kvplan.engines.vllm.served_requests import held, served
from glm_kvplan.engines.vllm.starting import Begun, begin
from glm_kvplan.errors import RefusedError
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.workload import Demand

MOST_TP = 64  # the model's heads
LEAST_UTILIZATION = 0.7  # of a card, where nobody says what is free
_LIMITS = 3  # of requests, of their length, and what the second leaves of the first


def server_layouts(plan: Plan, gpus: int, per_host: int) -> Iterator[Mapping[str, Any]]:
    """Tensor parallelism and engines side by side (data parallelism); a server larger than a host takes several.

    Flags of the layout that the user gave stay as they are.
    """
    given = plan.flags
    tensor, data, hosts = (given.get(f"{name}") for name in ("tensor_parallel_size", "data_parallel_size", "nnodes"))
    widths = [1 << power for power in range(MOST_TP.bit_length())]
    for width in widths if tensor is None else [plan.deployment.tensor_parallel_size]:
        for engines in range(1, gpus + 1) if data is None else [plan.deployment.data_parallel_size]:
            world = width * engines
            if gpus % world:
                continue
            layout = {
                **({} if tensor is not None else {"tensor_parallel_size": width}),
                **({} if data is not None or engines == 1 else {"data_parallel_size": engines}),
            }
            if hosts is not None or world <= per_host:
                yield layout
            elif world % per_host == 0 and (width % per_host == 0 or per_host % width == 0):
                yield {**layout, "nnodes": world // per_host}


def advise_server(plan: Plan, given: MemoryGiven, share: Demand) -> Advised:
    """The server with what serves the share, or as much of it as fits: its limits of requests and of their length, and
    more of the card where nobody fixed that. Nothing else is turned. Raises InputError, RefusedError.
    """
    found: list[Begun] = []
    for tried in chain([plan], (plan.with_flags(gpu_memory_utilization=each) for each in _more(plan))):
        if found and _sure(found[-1], share):
            break
        try:
            found.append(_limited(begin(tried, given), given, share))
        except RefusedError:  # so much of the card is not free, or nothing of this layout starts
            if found:
                break
            found.append(_with_less(plan, given, share))
    best = max(found, key=lambda begun: (_sure(begun, share), min(_served(begun, share), share.concurrency)))
    engines = best.plan.deployment.data_parallel_size
    got = served(best.start, share.contexts)
    requests = -(-min(got.requests, share.concurrency) // engines)
    bounds = block_bounds(best, given, share.contexts, requests)
    added = {name: value for name, value in best.plan.flags.items() if plan.flags.get(name) != value}
    return Advised(
        plan=best.plan,
        flags=added,
        holds=got.requests >= share.concurrency,
        served=min(got.requests, share.concurrency),
        most=held(best.start, share.contexts) * engines if got.limit != "--max-model-len" else 0,
        limit=got.limit if got.requests < share.concurrency else "blocks",
        sizes=bounds,
        floor_tokens=bounds.floor_blocks * bounds.block_tokens,
        ceiling_tokens=bounds.ceiling_blocks * bounds.block_tokens,
        memory=best.memory,
        warnings=best.notes,
        admitted=best.plan.deployment.max_num_seqs * engines,
        at_least=lambda: min(served(best.low, share.contexts).requests, share.concurrency),
        failure="" if best.start.failure is None else best.start.failure.reason,
    )


def _with_less(plan: Plan, given: MemoryGiven, share: Demand) -> Begun:
    """With the most of the card that is free, where nobody said how much. Raises InputError, RefusedError."""
    found = plan.deployment.gpu_memory_utilization
    while "gpu_memory_utilization" not in plan.flags and found > LEAST_UTILIZATION:
        found = round(found - UTILIZATION_STEP, 4)
        try:
            return _limited(begin(plan.with_flags(gpu_memory_utilization=found), given), given, share)
        except RefusedError:
            continue
    return _limited(begin(plan, given), given, share)  # refused for what it is


def _more(plan: Plan) -> Iterator[float]:
    """More of the card, step by step; none where the user said how much."""
    if not plan.flags.keys().isdisjoint(("gpu_memory_utilization", *FIXES_BLOCKS)):
        return
    found = plan.deployment.gpu_memory_utilization
    while (found := round(found + UTILIZATION_STEP, 4)) <= HIGHEST_UTILIZATION:
        yield found


def _served(begun: Begun, share: Demand) -> int:
    return served(begun.start, share.contexts).requests


def _sure(begun: Begun, share: Demand) -> bool:
    """It serves the share also at the low end of the memory's estimate."""
    return min(_served(begun, share), served(begun.low, share.contexts).requests) >= share.concurrency


def _limited(begun: Begun, given: MemoryGiven, share: Demand) -> Begun:
    """The start with the limits of requests and of their length as the share needs them, where they are in its way."""
    for _ in range(_LIMITS):
        flags = _limit(begun, share)
        if not flags:
            break
        begun = begin(begun.plan.with_flags(**flags), given)
    return begun


def _limit(begun: Begun, share: Demand) -> Mapping[str, int]:
    """The next limit that is in the way: too small for the share, or so large that nothing starts."""
    deployment, failure = begun.plan.deployment, begun.start.failure
    requests = -(-share.concurrency // deployment.data_parallel_size)
    longest = share.contexts.longest
    if begun.start.max_model_len < longest <= begun.plan.geometry.max_position_embeddings:
        return {} if deployment.fits_max_model_len else {"max_model_len": longest}
    if failure is None:
        return {"max_num_seqs": requests} if deployment.max_num_seqs < requests <= begun.start.count else {}
    if failure.kind == "one request":
        return {"max_model_len": longest} if longest < deployment.max_model_len else {}
    if failure.kind == "requests above blocks":
        return {"max_num_seqs": min(requests, begun.start.count)}
    return {}
