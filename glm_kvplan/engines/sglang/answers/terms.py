"""The foot of a page: what the words of the engine mean that it uses."""

from collections.abc import Iterator

from glm_kvplan.engines.answer_head import Head
from glm_kvplan.show.format import count
from glm_kvplan.show.said import Said, say


def terms(head: Head, *, ranks: bool = False) -> tuple[Said, ...]:
    """What a state slot is, and a DP worker where there are several; `ranks`: the page counts by ranks."""
    return tuple(_terms(head, ranks))


def _terms(head: Head, ranks: bool) -> Iterator[Said]:
    if ranks:
        yield say("a rank is one GPU's process, a state slot holds one KDA state of all KDA layers")
    else:
        slots = count(int(str(head.deployment["slots_per_request"])), "slot")
        yield say("a state slot holds one KDA state, of all KDA layers; a request takes {slots}", slots=slots)
    if head.deployment["attn_dp_size"] != 1:
        yield say("a DP worker is a group of GPUs with requests and pools of its own")
