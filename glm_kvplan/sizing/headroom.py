"""Whether the part of HBM that stays free is enough to serve from."""

from typing import NamedTuple

from glm_kvplan.sizing.memory_map import MemoryMap
from glm_kvplan.sizing.transients import Transients
from glm_kvplan.units import GIB


class Headroom(NamedTuple):
    """`free`: what serving can take. `verdict`: "fits", "short", or "tight": within the estimates' error, or batches
    of long prompts can break it.
    """

    verdict: str
    free: int
    needed: int
    message: str


def headroom(memory: MemoryMap, needs: Transients) -> Headroom:
    """Compare what stays free with what serving needs, and say plainly what would happen."""
    free, needed, unsure = memory.usable, needs.nbytes, needs.unsure_bytes
    have = f"{free / GIB:.1f} GiB stay free"
    if free < 0:
        over = -free / GIB
        return Headroom(
            "short", free, needed,
            f"the pools with what the budget does not charge take {over:.1f} GiB more than there is: the server "
            "dies while it allocates them; lower --mem-fraction-static",
        )  # fmt: skip
    want = ", ".join(f"{item.name} ~{item.nbytes / GIB:.1f}" for item in needs.items)
    if free < needed - unsure:
        return Headroom(
            "short", free, needed,
            f"the pools fit, but the first prompt of {needs.prompt_tokens:,} tokens dies: {have}, it needs "
            f"~{needed / GIB:.1f} GiB ({want}); lower --mem-fraction-static or --chunked-prefill-size",
        )  # fmt: skip
    if free < needed + unsure:
        return Headroom(
            "tight", free, needed,
            f"{have} and a prompt of {needs.prompt_tokens:,} tokens needs ~{needed / GIB:.1f} GiB ({want}), which "
            f"is estimated to {unsure / GIB:.1f} GiB: lower --mem-fraction-static or --chunked-prefill-size to be safe",
        )  # fmt: skip
    limit = needs.largest_context
    if limit is not None and limit < needs.pool_tokens:
        return Headroom(
            "tight", free, needed,
            f"{have}: one prompt of {needs.prompt_tokens:,} tokens fits, but a prefill batch whose contexts add up to "
            f"more than {limit:,} tokens (cached prefixes count; the pool holds {needs.pool_tokens:,}) dies, because "
            "this release does not bound the indexer's logits; lower --chunked-prefill-size or take a later release",
        )  # fmt: skip
    return Headroom(
        "fits", free, needed,
        f"{have}, serving a prompt of {needs.prompt_tokens:,} tokens needs ~{needed / GIB:.1f} GiB ({want})",
    )  # fmt: skip
