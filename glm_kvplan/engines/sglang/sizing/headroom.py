"""Whether the part of HBM that stays free is enough to serve from."""

from typing import NamedTuple

from glm_kvplan.engines.sglang.sizing.memory_map import MemoryMap
from glm_kvplan.engines.sglang.sizing.transients import Transients
from glm_kvplan.show.format import whole
from glm_kvplan.show.said import Said, say
from glm_kvplan.units import GIB


class Headroom(NamedTuple):
    """`free`: what serving can take. `verdict`: "fits", "short", or "tight": within the estimates' error, or batches
    of long prompts can break it.
    """

    verdict: str
    usable: int
    needed: int
    message: Said


_SAID = {
    "pools": "the pools with what the budget does not charge take {over} GiB more than there is: the server dies while "
    "it allocates them; lower --mem-fraction-static",
    "prompt": "the pools fit, but the first prompt of {prompt} tokens dies: {have}, it needs ~{needed} GiB ({items}); "
    "lower --mem-fraction-static or --chunked-prefill-size",
    "error": "{have} and a prompt of {prompt} tokens needs ~{needed} GiB ({items}), +-{unsure} GiB: lower "
    "--mem-fraction-static or --chunked-prefill-size to be safe",
    "batch": "{have}: one prompt of {prompt} tokens fits, but a prefill batch whose contexts add up to more than "
    "{limit} tokens (cached prefixes count; the pool holds {pool}) dies, because this release does not bound the "
    "indexer's logits; lower --chunked-prefill-size or take a later release",
    "nothing": "{have}, serving a prompt of {prompt} tokens needs ~{needed} GiB ({items})",
}


def judge(usable: int, needs: Transients) -> tuple[str, str]:
    """The verdict on bytes that serving can take, and what decides it: pools, prompt, error, batch, nothing."""
    if usable < 0:
        return "short", "pools"
    needed, unsure = needs.nbytes, needs.unsure_bytes
    if usable < needed - unsure:
        return "short", "prompt"
    if usable < needed + unsure:
        return "tight", "error"
    if needs.largest_context is not None and needs.largest_context < needs.pool_tokens:
        return "tight", "batch"
    return "fits", "nothing"


def headroom(memory: MemoryMap, needs: Transients, upper_bound: bool = False) -> Headroom:
    """Compare what stays free with what serving needs, and say plainly what would happen. `upper_bound`: no more than
    that stays free, since not everything that takes memory is known.
    """
    usable, needed, unsure = memory.usable, needs.nbytes, needs.unsure_bytes
    verdict, decided_by = judge(usable, needs)
    about = "~" * (memory.segments[-1].certainty == "estimated")
    have, template = f"{about}{usable / GIB:.1f}", "{left} GiB stay free"
    if memory.usable > memory.unallocated:
        template = "{left} GiB stay free (the draft's embedding and head among them)"
    message = say(
        _SAID[decided_by],
        have=say(template, left=say("at most {value}", value=have) if upper_bound else have),
        prompt=whole(needs.prompt_tokens),
        needed=f"{needed / GIB:.1f}",
        items=tuple(
            say("{name} ~{size}", name=say(item.name), size=f"{item.nbytes / GIB:.1f}") for item in needs.items
        ),
        unsure=f"{unsure / GIB:.1f}",
        over=f"{about}{-usable / GIB:.1f}",
        limit=whole(needs.largest_context or 0),
        pool=whole(needs.pool_tokens),
    )
    return Headroom(verdict, usable, needed, message)
