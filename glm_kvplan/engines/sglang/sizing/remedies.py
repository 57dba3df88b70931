"""When the engine would not start: the smallest turn of each knob with which it would, found by trying."""

from typing import NamedTuple

from glm_kvplan.engines.sglang.sizing.server import Server
from glm_kvplan.memory.budget import NoRoomError

ANEW = " (its memory estimated)"


class Remedy(NamedTuple):
    """One change that alone makes the engine start."""

    flag: str  # the engine's argument name, or "available_gib" for memory itself
    value: int | float | str | bool
    text: str  # the change as one would type or do it
    estimated: bool = False  # memory was read for other weights a rank, and is estimated for these
    flags: dict[str, object] = {}  # noqa: RUF012  # what to type; never changed


def require_memory(server: Server) -> None:
    """Refuse a server whose weights do not fit. Raises NoRoomError that names the fewest GPUs with which it starts."""
    try:
        server.budget  # noqa: B018
    except NoRoomError as error:
        from glm_kvplan.engines.sglang.knob_search import Wish, lacking_to_start, nearest
        from glm_kvplan.engines.sglang.moves import MOVE, typed

        turned = nearest(server, MOVE["tp_size"], Wish(), lacking_to_start)
        if turned is None:
            raise
        raise NoRoomError(f"{error}; it starts with {typed(turned.flags)}") from None


def remedies(server: Server) -> list[Remedy]:
    """For a server that does not start: of each knob the nearest turn with which it does. Empty if none alone does.

    Every one has been resolved and solved; nothing is extrapolated.
    """
    if server.starts:
        return []
    # most servers start
    from glm_kvplan.engines.sglang.knob_search import Wish, lacking_to_start, nearest
    from glm_kvplan.engines.sglang.moves import MOVES, typed

    found = []
    for move in MOVES:
        turned = nearest(server, move, Wish(), lacking_to_start)
        if turned is None:
            continue
        flags, estimated = turned.flags, turned.server.memory_moved
        name = move.name if move.name in flags and flags[move.name] is not None else next(iter(flags))
        value = "none" if flags[name] is None else flags[name]
        found.append(Remedy(name, value, typed(flags) + ANEW * estimated, estimated, flags))
    return found + _more_memory(server)


def _more_memory(server: Server) -> list[Remedy]:
    """More memory left by the weights: smaller weights, or a card with less used."""
    more_gib = server.missing_gib
    if more_gib is None:
        return []
    value = server.budget.available_gib + more_gib
    text = f"{more_gib:.2f} GiB more left free by the weights, {value:.2f} GiB in all"
    return [Remedy("available_gib", value, text)]
