"""What a knob is, and the nearest turn of it with which nothing is lacking any more.

A turn is flags: the server is resolved and sized anew with them, so what was found can be typed.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, NamedTuple

from glm_kvplan.engines.sglang.sizing.server import Server
from glm_kvplan.errors import KvplanError

Lack = Literal["slots", "tokens", "requests", "context", "free"]
Lacks = frozenset[Lack]
NOTHING: Lacks = frozenset()


class Wish(NamedTuple):
    """What a server is to hold; nothing: it is to start."""

    requests: int = 0  # running requests of one DP worker
    context: int = 0
    serve: bool = False  # it is to serve, not only to start


class Turn(NamedTuple):
    """A knob turned by one unit: its value before and after as typed, and the flags that turn it."""

    before: str
    after: str
    flags: dict[str, Any]
    name: str = ""  # where more than the knob's own flag is turned


class Way(NamedTuple):
    """Values of a knob in one direction, the nearest first, and the flags of each.

    `cures`: what gets less short the further one goes, while the rest gets shorter; none: the values have no order.
    """

    values: Sequence[Any]
    flags: Callable[[Any], dict[str, Any]]
    cures: Lacks = NOTHING


class Move(NamedTuple):
    """One knob. `name` is the engine's flag; what that moves (weights, pools) stands in the table of flags."""

    name: str
    unit: Callable[[Server], Turn | None]  # one unit more, for its price; None: there is none
    ways: Callable[[Server, Wish], Iterator[Way]]
    kind: Literal["number", "switch", "layout"] = "number"


class Turned(NamedTuple):
    """The flags of a turn that does what was wanted of it, and the server it makes."""

    flags: dict[str, Any]
    server: Server


def nearest(server: Server, move: Move, wish: Wish, lacking: Callable[[Server], Lacks]) -> Turned | None:
    """The nearest turn of a knob with which nothing is lacking any more; None where no turn of it does that.

    Along a way with an order it is found by halving: what is lacking is cured by going on, or was gone past.
    """
    for way in move.ways(server, wish):
        search = _Search(server, way, lacking)
        found = search.halved() if way.cures else search.first()
        if found is not None:
            return found
    return None


class _Search(NamedTuple):
    server: Server
    way: Way
    lacking: Callable[[Server], Lacks]

    def at(self, place: int) -> tuple[Turned | None, bool]:
        """The turn to the value at `place` where nothing is lacking with it, and whether to go further."""
        flags = self.way.flags(self.way.values[place])
        other = self.server.tried(**flags)
        if other is None:
            return None, False
        try:
            lacks = self.lacking(other)
        except KvplanError:
            return None, False
        return (None if lacks else Turned(flags, other)), bool(lacks) and lacks <= self.way.cures

    def first(self) -> Turned | None:
        tried = (self.at(place)[0] for place in range(len(self.way.values)))
        return next((turned for turned in tried if turned is not None), None)

    def halved(self) -> Turned | None:
        low, high = -1, len(self.way.values) - 1
        if high < 0:
            return None
        found, further = self.at(high)
        if further:
            return None
        while high - low > 1:
            middle = (low + high) // 2
            turned, further = self.at(middle)
            low, high, found = (middle, high, found) if further else (low, middle, turned)
        return found


def lacking_to_start(server: Server) -> Lacks:
    """What keeps the engine from starting; nothing where it starts."""
    failed = server.failed
    if failed is None:
        return NOTHING if server.lays_hosts_out else frozenset(("tokens",))
    if failed.failure == "no_state_slots":
        return frozenset(("slots",))
    if failed.failure != "no_requests":
        return frozenset(("tokens",))
    if failed.costs.requests == 0:
        return frozenset(("requests",))
    return frozenset(("slots",) if failed.state_slots < failed.costs.slots_per_request else ("tokens",))
