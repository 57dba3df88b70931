"""How to split a rank's memory between states and tokens for a demand: the most requests, then the most cached."""

from typing import Any, NamedTuple

from glm_kvplan.bisection import largest
from glm_kvplan.engines.sglang.flags import FLAG
from glm_kvplan.engines.sglang.sizing.served_requests import Demand, Served, served, slots_of_request
from glm_kvplan.engines.sglang.sizing.solver import Solution
from glm_kvplan.engines.sglang.sizing.what_if import Setup

DEFAULT_RATIO = float(str(FLAG["mamba_full_memory_ratio"].default))  # where the user gives none
MOST_KEPT = 1 << 20


class Split(NamedTuple):
    """Flags that fix a split, what the engine sizes under them and what that serves.

    `setup` has the flags applied. Where not one request fits, `flags` is empty and `solution` None.
    """

    setup: Setup
    flags: dict[str, Any]
    solution: Solution | None
    served: Served


def requests_wanted(setup: Setup, demand: Demand) -> int:
    """Requests of the busiest worker when the demand's concurrency is spread evenly."""
    return -(-demand.concurrency // (setup.deployment.attn_dp_size * setup.deployment.replicas))


def slots_needed(setup: Setup, demand: Demand, requests: int, kept: int = 0) -> int:
    """State slots of one worker for running requests, and for finished conversations: one and its checkpoints each."""
    return requests * slots_of_request(demand, setup.deployment) + kept * (1 + demand.checkpoints)


def split_flags(setup: Setup, requests: int, slots: int) -> dict[str, Any]:
    """The flags of a split, as the whole engine takes them: requests and slots count over all its DP workers."""
    deployment = setup.deployment
    workers = deployment.attn_dp_size
    return {
        "max_running_requests": requests * workers,
        "max_mamba_cache_size": slots * workers,
        "max_total_tokens": None,
        "chunked_prefill_size": deployment.chunked_prefill_size * workers,
        "mem_fraction_static": deployment.mem_fraction_static,
    }


def default_split(setup: Setup, demand: Demand) -> Served:
    """What the engine's own split serves: no explicit slots or tokens, its default ratio, every other flag as it is."""
    other = setup.changed(max_mamba_cache_size=None, mamba_full_memory_ratio=DEFAULT_RATIO, max_total_tokens=None)
    solution = None if other is None else other.solution()
    if other is None or solution is None or solution.failure is not None:
        return Served(0, 0, "memory")
    return served(demand, other.deployment, solution.sizes)


def best_split(setup: Setup, demand: Demand) -> Split:
    """The split of this setup's memory that serves the most requests of the demand, its memory fraction unchanged.

    Slots are fixed at what the requests need and tokens take the rest; memory that is spare then keeps as many finished
    conversations cached as it can. Searched without the resolver, because a split's flags pin whatever another flag's
    default could move, then solved from the flags alone; where the resolver does move something, searched with it.
    """
    fast = _search(setup.pinned(), demand)
    if fast.solution is None:
        return fast._replace(setup=setup)
    other = setup.changed(**fast.flags)
    if other is not None:
        solution = other.solution()
        if solution.failure is None and solution.sizes == fast.solution.sizes:
            return fast._replace(setup=other, solution=solution)
    return _search(setup, demand)


def _search(setup: Setup, demand: Demand) -> Split:
    wanted = requests_wanted(setup, demand)

    def holds(requests: int) -> bool:
        solution = setup.attempt(**split_flags(setup, requests, slots_needed(setup, demand, requests)))
        if solution is None or solution.failure is not None:
            return False
        return served(demand, setup.deployment, solution.sizes).per_worker >= requests

    if not holds(1):
        return Split(setup, {}, None, Served(0, 0, "memory"))
    requests = largest(holds, 1, wanted)
    slots = slots_needed(setup, demand, requests, _most_kept(setup, demand, requests))
    flags = split_flags(setup, requests, slots)
    first = setup.attempt(**flags)
    assert first is not None
    flags["max_total_tokens"] = first.tokens
    other = setup.changed(**flags)
    assert other is not None
    solution = other.solution()
    got = served(demand, other.deployment, solution.sizes)
    return Split(other, flags, solution, got if requests == wanted else got._replace(limit="memory"))


def _most_kept(setup: Setup, demand: Demand, requests: int) -> int:
    """Finished conversations of one worker that spare memory keeps cached beside its running requests."""
    deployment = setup.deployment
    if deployment.disable_radix_cache:
        return 0

    def holds(kept: int) -> bool:
        solution = setup.attempt(**split_flags(setup, requests, slots_needed(setup, demand, requests, kept)))
        if solution is None or solution.failure is not None:
            return False
        return tokens_of(setup, demand, requests + kept) <= solution.tokens

    return largest(holds, 0, MOST_KEPT)


def conversations_kept(split: Split, demand: Demand) -> int:
    """Finished conversations that a split's spare tokens and slots keep cached on a worker."""
    if split.solution is None or split.setup.deployment.disable_radix_cache:
        return 0
    tokens, running = split.solution.tokens, split.served.per_worker
    spare = split.solution.state_slots - slots_needed(split.setup, demand, running)
    return largest(
        lambda kept: tokens_of(split.setup, demand, running + kept) <= tokens,
        0,
        max(0, spare) // (1 + demand.checkpoints),
    )


def tokens_needed(split: Split, demand: Demand) -> int:
    """Tokens of one worker's pool under which its split would serve fewer requests."""
    page = split.setup.deployment.page_size
    longest = (demand.contexts.longest // page + 1) * page
    return max(tokens_of(split.setup, demand, split.served.per_worker), longest)


def tokens_of(setup: Setup, demand: Demand, requests: int) -> int:
    """Tokens that `requests` requests of the demand's mix fill on one worker."""
    return demand.contexts.tokens(requests, setup.deployment.page_size, setup.deployment.decode_reserve)


def with_flags(split: Split, changes: dict[str, Any], demand: Demand) -> Split | None:
    """The split with some of its flags changed, solved again; None where it would serve fewer requests."""
    flags = {**split.flags, **changes}
    setup = split.setup.changed(**flags)
    solution = None if setup is None else setup.solution()
    if setup is None or solution is None or solution.failure is not None:
        return None
    got = served(demand, setup.deployment, solution.sizes)
    if got.requests < split.served.requests:
        return None
    return split._replace(setup=setup, flags=flags, solution=solution)
