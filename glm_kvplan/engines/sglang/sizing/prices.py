"""The price list: what one more unit of each knob costs or buys, by solving twice."""

from typing import TYPE_CHECKING, NamedTuple

from glm_kvplan.engines.sglang.sizing.server import Server

if TYPE_CHECKING:
    from glm_kvplan.engines.sglang.knob_search import Turn


class Price(NamedTuple):
    """One knob moved by one unit. Deltas are of one rank (one DP worker); `total_...` of the whole deployment."""

    knob: str
    before: str
    after: str
    tokens: int  # more tokens in the pool
    slots: int  # more state slots
    requests: int  # more running requests
    total_tokens: int  # over all DP workers and replicas, as the next two
    total_slots: int
    total_requests: int
    gpus: int  # more GPUs
    free_bytes: int  # more bytes free once every pool is allocated, charged or not
    failure: str | None  # the engine would not start: the kind of failure; the deltas are then 0
    estimated: bool  # memory was read for other weights a rank, and is estimated for these
    flags: dict[str, object]  # what to type


def prices(server: Server) -> list[Price]:
    """The price of one unit of each knob of a server that starts. A knob that it cannot turn is left out.

    Raises SizingError where the server itself does not start.
    """
    if server.failed is not None:
        raise server.refusal()
    from glm_kvplan.engines.sglang.moves import MOVES  # most answers have no prices

    turns = ((move, move.unit(server)) for move in MOVES)
    priced = (_price(server, turn.name or move.name, turn) for move, turn in turns if turn is not None)
    return [price for price in priced if price is not None]


def _price(server: Server, name: str, turn: "Turn") -> Price | None:
    other = server.tried(**turn.flags)
    if other is None:
        return None
    fails = None if other.failed is None else other.failed.failure
    before, after = server.sizes, other.sizes if fails is None else server.sizes
    now, then = _workers(server), _workers(other if fails is None else server)
    return Price(
        knob=name,
        before=turn.before,
        after=turn.after,
        tokens=after.tokens - before.tokens,
        slots=after.state_slots - before.state_slots,
        requests=after.running_requests - before.running_requests,
        total_tokens=after.tokens * then - before.tokens * now,
        total_slots=after.state_slots * then - before.state_slots * now,
        total_requests=after.running_requests * then - before.running_requests * now,
        gpus=other.plan.gpus - server.plan.gpus,
        free_bytes=0 if fails is not None else other.unallocated - server.unallocated,
        failure=fails,
        estimated=other.memory_moved,
        flags=turn.flags,
    )


def _workers(server: Server) -> int:
    """Ranks with tokens and states of their own."""
    return server.deployment.attn_dp_size * server.deployment.replicas
