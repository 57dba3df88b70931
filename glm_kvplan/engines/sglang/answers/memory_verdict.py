"""What a verdict on memory leaves out: whether the card has kernels for the attention that is asked for."""

from glm_kvplan.engines.answer_head import Head
from glm_kvplan.show.page import Verdict
from glm_kvplan.show.said import say


def in_memory(head: Head, verdict: Verdict) -> Verdict:
    """A verdict on memory, which says no more than that where no attention kernels of its kind run on the card."""
    if verdict.tone == "bad" or not head.deployment["kernels_missing"]:
        return verdict
    template = (
        "No attention kernels of its kind are known for this card: its first forward is expected to fail. In memory: "
        "{verdict}"
    )
    return verdict._replace(text=say(template, verdict=verdict.text), tone="bad")
