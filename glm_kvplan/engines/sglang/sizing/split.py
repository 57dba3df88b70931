"""How to split a rank's memory between states and tokens for a demand: the most requests, then the most cached."""

from collections.abc import Callable
from typing import Any, NamedTuple

from glm_kvplan.bisection import largest, largest_near
from glm_kvplan.engines.sglang.moves import chunk_flag
from glm_kvplan.engines.sglang.sizing.served_requests import Served, served, slots_of_request
from glm_kvplan.engines.sglang.sizing.server import Server
from glm_kvplan.engines.sglang.sizing.solver import Solution
from glm_kvplan.workload import Demand

# The engine's own split: no explicit slots or tokens, its default ratio.
OWN_SPLIT: dict[str, Any] = dict.fromkeys(("max_mamba_cache_size", "mamba_full_memory_ratio", "max_total_tokens"))
_MORE = 8
NO_REQUEST = Served(0, 0, "memory")


class Split(NamedTuple):
    """Flags that fix a split, what the engine sizes under them and what that serves.

    `server` has the flags. Where not one request fits, `flags` is empty and `solution` None.
    """

    server: Server
    flags: dict[str, Any]
    solution: Solution | None
    served: Served


def requests_wanted(server: Server, demand: Demand) -> int:
    """Requests of the busiest worker when the demand's concurrency is spread evenly."""
    return -(-demand.concurrency // (server.deployment.attn_dp_size * server.deployment.replicas))


def slots_needed(server: Server, demand: Demand, requests: int, kept: int = 0) -> int:
    """State slots of one worker for running requests and finished conversations: one and its prefix states each."""
    return requests * slots_of_request(demand, server.deployment) + kept * (1 + demand.prefix_states)


def split_flags(server: Server, requests: int, slots: int) -> dict[str, Any]:
    """The flags of a split, as the whole engine takes them: requests and slots count over all its DP workers.

    The memory fraction (without the dust of its last binary digits) and the chunk are the server's own, written out: no
    other flag moves them then.
    """
    workers = server.deployment.attn_dp_size
    return {
        "max_running_requests": requests * workers,
        "max_mamba_cache_size": slots * workers,
        "max_total_tokens": None,
        **chunk_flag(server, server.deployment.chunked_prefill_size),
        "mem_fraction_static": round(server.typed_fraction, 12),
    }


def default_split(server: Server, demand: Demand) -> Served:
    """What the engine's own split serves: no explicit slots or tokens, its default ratio, every other flag as it is."""
    other = server.tried(**OWN_SPLIT)
    return NO_REQUEST if other is None or not other.starts else served(demand, other.deployment, other.sizes)


def split_for(server: Server, demand: Demand, requests: int, kept: int = 0) -> Server | None:
    """The server split for so many running requests of a worker and finished conversations; None: it does not serve
    them so.
    """
    other = _split(server, demand, requests, kept)
    if other is None or not other.starts or served(demand, other.deployment, other.sizes).per_worker < requests:
        return None
    return other


def _split(server: Server, demand: Demand, requests: int, kept: int = 0) -> Server | None:
    return server.tried(**split_flags(server, requests, slots_needed(server, demand, requests, kept)))


def most_requests(server: Server, demand: Demand) -> int:
    """The most requests of the demand that a worker serves under the best split; at most its share of the demand."""
    wanted = requests_wanted(server, demand)
    if split_for(server, demand, wanted) is not None:
        return wanted
    one = split_for(server, demand, 1)
    if one is None:
        return 0
    return _most(
        one,
        range(1, wanted),
        fits=lambda tokens, requests: tokens_of(server, demand, requests) <= tokens,
        guess=demand.contexts.likely_requests,
        split=lambda requests: _split(server, demand, requests),
        holds=lambda requests: split_for(server, demand, requests),
    )


def _most(
    first: Server,
    numbers: range,
    *,
    fits: Callable[[int, int], bool],
    guess: Callable[[float, float], int],
    split: Callable[[int], Server | None],
    holds: Callable[[int], Server | None],
) -> int:
    """The largest of the numbers that holds; `first` is the server of the least, which does.

    More requests' slots leave fewer tokens, and nearly evenly so: a few more of them tell about how many hold. What
    fits (into tokens) beside as many as do hold is the most that can; `guess` says it roughly, of the tokens
    and of those that a number costs beside.
    """
    low, high = numbers[0], numbers[-1]

    def fitting(server: Server, lost: float = 0.0) -> int:
        tokens = server.sizes.tokens + lost * low
        return largest_near(guess(tokens, lost), lambda number: fits(int(tokens - lost * number), number), low, high)

    high = fitting(first)
    more = min(high, low + _MORE)
    few = split(more)
    if few is not None and few.starts:
        likely = fitting(first, (first.sizes.tokens - few.sizes.tokens) / max(more - low, 1))
        for number in (likely, likely - likely // _MORE - 1):
            if number <= low:
                break
            found = holds(number)
            if found is not None:
                low = number
                high = fitting(found)
                break
            high = number - 1
    return largest(lambda number: holds(number) is not None, low, high)


def best_split(server: Server, demand: Demand) -> Split:
    """The split of this server's memory that serves the most requests of the demand, its memory fraction unchanged.

    Slots are fixed at what the requests need and tokens take the rest; memory that is spare then keeps as many finished
    conversations cached as it can.
    """
    requests = most_requests(server, demand)
    if not requests:
        return Split(server, {}, None, NO_REQUEST)
    kept = _most_kept(server, demand, requests)
    first = split_for(server, demand, requests, kept)
    assert first is not None
    flags = split_flags(server, requests, slots_needed(server, demand, requests, kept))
    flags["max_total_tokens"] = first.sizes.tokens
    other = server.with_flags(**flags)
    got = served(demand, other.deployment, other.sizes)
    if requests < requests_wanted(server, demand):
        got = got._replace(limit="memory")
    return Split(other, flags, other.solution, got)


def _most_kept(server: Server, demand: Demand, requests: int) -> int:
    """Finished conversations of one worker that spare memory keeps cached beside its running requests."""
    if server.deployment.disable_radix_cache:
        return 0
    none = split_for(server, demand, requests)
    assert none is not None

    def fits(tokens: int, kept: int) -> bool:
        return tokens_of(server, demand, requests + kept) <= tokens

    def holds(kept: int) -> Server | None:
        other = split_for(server, demand, requests, kept)
        return other if other is not None and fits(other.sizes.tokens, kept) else None

    return _most(
        none,
        range(none.sizes.tokens + 1),
        fits=fits,
        guess=lambda tokens, lost: demand.contexts.likely_requests(tokens + lost * requests, lost) - requests,
        split=lambda kept: _split(server, demand, requests, kept),
        holds=holds,
    )


def conversations_kept(split: Split, demand: Demand) -> int:
    """Finished conversations that a split's spare tokens and slots keep cached on a worker."""
    if split.solution is None or split.server.deployment.disable_radix_cache:
        return 0
    tokens, running = split.solution.tokens, split.served.per_worker
    spare = split.solution.state_slots - slots_needed(split.server, demand, running)
    return largest_near(
        demand.contexts.likely_requests(tokens) - running,
        lambda kept: tokens_of(split.server, demand, running + kept) <= tokens,
        0,
        max(0, spare) // (1 + demand.prefix_states),
    )


def tokens_needed(split: Split, demand: Demand) -> int:
    """Tokens of one worker's pool under which its split would serve fewer requests."""
    page = split.server.deployment.page_size
    longest = (demand.contexts.longest // page + 1) * page
    return max(tokens_of(split.server, demand, split.served.per_worker), longest)


def tokens_of(server: Server, demand: Demand, requests: int) -> int:
    """Tokens that `requests` requests of the demand's mix fill on one worker."""
    return demand.contexts.tokens(requests, server.deployment.page_size, server.deployment.decode_reserve)


def with_flags(split: Split, changes: dict[str, Any], demand: Demand) -> Split | None:
    """The split with some of its flags changed, solved again; None where it would serve fewer requests."""
    flags = {**split.flags, **changes}
    server = split.server.tried(**flags)
    if server is None or not server.starts:
        return None
    got = served(demand, server.deployment, server.sizes)
    if got.requests < split.served.requests:
        return None
    return split._replace(server=server, flags=flags, solution=server.solution)
