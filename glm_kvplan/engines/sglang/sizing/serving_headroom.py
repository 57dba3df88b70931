"""Room beside the pools: what a split leaves free against what serving the demand needs of it."""

from typing import NamedTuple

from glm_kvplan.engines.sglang.rank import rank_of
from glm_kvplan.engines.sglang.sizing.free_memory import free_bytes
from glm_kvplan.engines.sglang.sizing.served_requests import Demand
from glm_kvplan.engines.sglang.sizing.split import Split, best_split, tokens_needed, with_flags
from glm_kvplan.engines.sglang.sizing.transients import transients
from glm_kvplan.engines.sglang.sizing.what_if import Setup
from glm_kvplan.units import GIB

SMALLEST_CHUNK = 2048  # the engine's own reserve for activations shrinks no further below it
FRACTION_STEP = 0.005


class Room(NamedTuple):
    """Bytes of the rank with the least left."""

    free: int  # once every pool is allocated
    needed: int  # while the longest context is prefilled: graphs, activations, images, logits (partly estimated)
    unsure: int  # how far `needed` may be off

    @property
    def short(self) -> int:
        """Bytes missing; 0 or less where serving has what it needs."""
        return self.needed - self.free


def room(split: Split, demand: Demand) -> Room:
    """The room a split leaves; nothing where there is no split. The card counts as what was free before loading."""
    solution = split.solution
    if solution is None:
        return Room(0, 0, 0)
    free = free_bytes(split.setup, solution)
    needs = transients(
        rank_of(split.setup),
        solution.sizes,
        free_bytes=free,
        total_bytes=int(solution.pre_gib * GIB),
        prompt_tokens=demand.contexts.longest,
    )
    return Room(free, needs.nbytes, needs.unsure_bytes)


def with_room(split: Split, demand: Demand) -> Split:
    """The split changed until it leaves what serving needs, as far as that takes no request away.

    First the chunk is halved (a prefill step then needs less), then tokens beyond those of the requests are given up.
    The memory fraction stays, so that a smaller chunk leaves more of it free.
    """
    if split.solution is None:
        return split
    workers = split.setup.deployment.attn_dp_size
    while (short := room(split, demand).short) > 0:
        chunk = split.setup.deployment.chunked_prefill_size // 2
        other = None
        if chunk >= SMALLEST_CHUNK:
            other = with_flags(split, {"chunked_prefill_size": chunk * workers}, demand)
        if other is None:
            return _with_fewer_tokens(split, demand, short)
        split = other
    return split


def _with_fewer_tokens(split: Split, demand: Demand, short: int) -> Split:
    assert split.solution is not None
    page, now = split.setup.deployment.page_size, split.solution.tokens
    page_bytes = split.solution.costs.cell_bytes * page
    if not page_bytes:
        return split
    tokens = max(tokens_needed(split, demand), now - -(-short // page_bytes) * page)
    if tokens >= now:
        return split
    return with_flags(split, {"max_total_tokens": tokens}, demand) or split


def raised_fraction(setup: Setup, split: Split, demand: Demand) -> Split | None:
    """A split of more memory, where the engine's own reserve is more than serving needs: None where it is not.

    The memory fraction rises by steps until the demand is served, as long as what stays free covers the need and all
    its uncertainty. `split` is the best one of `setup` as it is.
    """
    fraction, raised = setup.deployment.mem_fraction_static, None
    steps = int(fraction / FRACTION_STEP)
    while split.served.requests < demand.concurrency:
        steps += 1
        fraction = round(steps * FRACTION_STEP, 3)
        other = setup.changed(mem_fraction_static=fraction) if fraction < 1 else None
        if other is None:
            break
        found = best_split(other, demand)
        left = room(found, demand)
        if found.solution is not None and left.free < left.needed + left.unsure:
            break
        if found.served.requests > split.served.requests:
            split = raised = found
    return raised
