"""Whether the part of HBM that stays free is enough to serve from."""

from typing import NamedTuple

from glm_kvplan.engines.sglang.sizing.memory_map import MemoryMap
from glm_kvplan.engines.sglang.sizing.transients import Transients
from glm_kvplan.units import GIB


class Headroom(NamedTuple):
    """`free`: what serving can take. `verdict`: "fits", "short", or "tight": within the estimates' error, or batches
    of long prompts can break it.
    """

    verdict: str
    free: int
    needed: int
    message: str


def judge(free: int, needs: Transients) -> tuple[str, str]:
    """The verdict on `free` bytes that serving can take, and what decides it: pools, prompt, error, batch, nothing."""
    if free < 0:
        return "short", "pools"
    needed, unsure = needs.nbytes, needs.unsure_bytes
    if free < needed - unsure:
        return "short", "prompt"
    if free < needed + unsure:
        return "tight", "error"
    if needs.largest_context is not None and needs.largest_context < needs.pool_tokens:
        return "tight", "batch"
    return "fits", "nothing"


def headroom(memory: MemoryMap, needs: Transients, upper_bound: bool = False) -> Headroom:
    """Compare what stays free with what serving needs, and say plainly what would happen. `upper_bound`: no more than
    that stays free, since not everything that takes memory is known.
    """
    free, needed, unsure = memory.usable, needs.nbytes, needs.unsure_bytes
    verdict, decided_by = judge(free, needs)
    about = "~" * (memory.segments[-1].certainty == "estimated")
    have, prompt = f"{'at most ' * upper_bound}{about}{free / GIB:.1f} GiB stay free", f"{needs.prompt_tokens:,}"
    if memory.usable > memory.free:
        have += " (the draft's embedding and head among them)"
    want = ", ".join(f"{item.name} ~{item.nbytes / GIB:.1f}" for item in needs.items)
    if decided_by == "pools":
        message = (
            f"the pools with what the budget does not charge take {about}{-free / GIB:.1f} GiB more than there is: the "
            "server dies while it allocates them; lower --mem-fraction-static"
        )
    elif decided_by == "prompt":
        message = (
            f"the pools fit, but the first prompt of {prompt} tokens dies: {have}, it needs "
            f"~{needed / GIB:.1f} GiB ({want}); lower --mem-fraction-static or --chunked-prefill-size"
        )
    elif decided_by == "error":
        message = (
            f"{have} and a prompt of {prompt} tokens needs ~{needed / GIB:.1f} GiB ({want}), which "
            f"is estimated to {unsure / GIB:.1f} GiB: lower --mem-fraction-static or --chunked-prefill-size to be safe"
        )
    elif decided_by == "batch":
        message = (
            f"{have}: one prompt of {prompt} tokens fits, but a prefill batch whose contexts add up to "
            f"more than {needs.largest_context:,} tokens (cached prefixes count; the pool holds "
            f"{needs.pool_tokens:,}) dies, because this release does not bound the indexer's logits; "
            "lower --chunked-prefill-size or take a later release"
        )
    else:
        message = f"{have}, serving a prompt of {prompt} tokens needs ~{needed / GIB:.1f} GiB ({want})"
    return Headroom(verdict, free, needed, message)
