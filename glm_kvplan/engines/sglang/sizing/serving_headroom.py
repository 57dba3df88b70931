"""Headroom beside the pools: what a split leaves against what serving the demand needs of it."""

from functools import cache
from typing import NamedTuple

from glm_kvplan.bisection import largest, least
from glm_kvplan.engines.sglang.moves import chunk_flag, smaller_chunks
from glm_kvplan.engines.sglang.sizing.server import Server
from glm_kvplan.engines.sglang.sizing.split import (
    Split,
    best_split,
    most_requests,
    split_for,
    tokens_needed,
    with_flags,
)
from glm_kvplan.workload import Demand

FRACTION_STEPS = 200  # the memory fraction rises by 0.005


class ServingHeadroom(NamedTuple):
    """Bytes of the rank with the least left."""

    usable: int  # that serving can take, once every pool is allocated
    needed: int  # while the longest context is prefilled: graphs, activations, images, logits (partly estimated)
    unsure: int  # how far `needed` may be off

    @property
    def short(self) -> int:
        """Bytes missing; 0 or less where serving has what it needs."""
        return self.needed - self.usable


def headroom_of(split: Split, demand: Demand) -> ServingHeadroom:
    """The headroom a split leaves; nothing where there is no split."""
    if split.solution is None:
        return ServingHeadroom(0, 0, 0)
    needs = split.server.needs(demand.contexts.longest)
    return ServingHeadroom(split.server.usable, needs.nbytes, needs.unsure_bytes)


def with_headroom(split: Split, demand: Demand) -> Split:
    """The split changed until it leaves what serving needs, as far as that takes no request away.

    First the chunk is halved (a prefill step then needs less), then tokens beyond those of the requests are given up.
    The memory fraction stays, so that a smaller chunk leaves more of it free.
    """
    if split.solution is None:
        return split
    while (short := headroom_of(split, demand).short) > 0:
        chunks = smaller_chunks(split.server)
        other = with_flags(split, chunk_flag(split.server, chunks[0]), demand) if chunks else None
        if other is None:
            return _with_fewer_tokens(split, demand, short)
        split = other
    return split


def _with_fewer_tokens(split: Split, demand: Demand, short: int) -> Split:
    assert split.solution is not None
    page, now = split.server.deployment.page_size, split.solution.tokens
    page_bytes = split.solution.costs.cell_bytes * page
    if not page_bytes:
        return split
    tokens = max(tokens_needed(split, demand), now - -(-short // page_bytes) * page)
    if tokens >= now:
        return split
    return with_flags(split, {"max_total_tokens": tokens}, demand) or split


def raised_fraction(server: Server, split: Split, demand: Demand) -> Split | None:
    """A split of more memory, where the engine's own reserve is more than serving needs: None where it is not.

    The least fraction, in steps, with which the demand is served, as long as what stays free covers the need and all
    its uncertainty; where none serves all of it, the least that serves the most. `split` is the best one of `server`
    as it is.
    """
    now = int(server.typed_fraction * FRACTION_STEPS)
    highest = FRACTION_STEPS - 1
    if split.served.requests >= demand.concurrency or now >= highest:
        return None

    def at(steps: int) -> Server | None:
        return server.tried(mem_fraction_static=steps / FRACTION_STEPS)

    @cache
    def best(steps: int) -> Split | None:
        other = at(steps)
        return None if other is None else best_split(other, demand)

    def covered(steps: int) -> bool:
        found = best(steps)
        if found is None:
            return False
        left = headroom_of(found, demand)
        return found.solution is None or left.usable >= left.needed + left.unsure

    def serves(steps: int, requests: int) -> bool:
        other = at(steps)
        return other is not None and split_for(other, demand, requests) is not None

    def raised(steps: int) -> Split | None:
        found = best(steps)
        return found if found is not None and found.served.requests > split.served.requests else None

    wanted = -(-demand.concurrency // (server.deployment.attn_dp_size * server.deployment.replicas))
    if serves(highest, wanted):
        first = least(lambda steps: serves(steps, wanted), now, highest)
        if covered(first):
            return raised(first)
        highest = first - 1
    if highest <= now or not covered(now + 1):
        return None
    highest = largest(covered, now + 1, highest)
    other = at(highest)
    most = 0 if other is None else most_requests(other, demand)
    if not most:
        return None
    return raised(least(lambda steps: serves(steps, most), now, highest))
