"""The foot of a page: what the words of the engine mean that it uses."""

from glm_kvplan.show.said import Said, say


def terms() -> tuple[Said, ...]:
    """What a block is."""
    return (say("a block holds tokens, states of a group of layers, or the tail of one request"),)
