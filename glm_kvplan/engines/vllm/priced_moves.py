"""The price of each knob: the deployment resolved and started anew with it turned, and what that changes."""

from collections.abc import Iterator
from typing import NamedTuple

from glm_kvplan.contexts import Contexts
from glm_kvplan.engines.vllm.flags import FLAG
from glm_kvplan.engines.vllm.moves import Move, moves
from glm_kvplan.engines.vllm.request_cost import fixed_cost
from glm_kvplan.engines.vllm.served_requests import served
from glm_kvplan.engines.vllm.starting import Begun, begin
from glm_kvplan.engines.vllm.turns import typed, wider
from glm_kvplan.errors import KvplanError
from glm_kvplan.memory.given import MemoryGiven

LIMITS = ("--max-num-seqs", "--max-model-len")  # what can be lowered to what the blocks hold


class PricedMove(NamedTuple):
    """A knob turned, and what it changes in the whole deployment; None where vLLM refuses it: `failure` says why."""

    knob: str
    before: str
    after: str
    requests: int | None  # at once, of the contexts asked for
    longest_context: int | None
    fixed_bytes: int | None  # of the blocks a request holds before its first token, on one GPU
    gpus: int
    failure: str | None


class Remedy(NamedTuple):
    """One change under which a refused start succeeds, or two where one is not enough: proved by starting it.

    `text` is all of it as one would type it.
    """

    name: str
    after: str
    beside: tuple[str, str] | None  # the second
    text: str


def priced_moves(begun: Begun, given: MemoryGiven, contexts: Contexts) -> tuple[PricedMove, ...]:
    """Every knob of the deployment, one step on, that changes something or is refused.

    A move that changes the memory before the blocks is left out where that memory is measured: nobody knows it then.
    """
    now = _figures(begun, contexts)
    found = []
    for move in _applicable(begun):
        then = _turned(begun, given, move)
        if isinstance(then, str):
            found.append(PricedMove(move.name, move.before, move.after, None, None, None, 0, then))
            continue
        figures = _figures(then, contexts)
        if figures == now:
            continue
        requests, longest, fixed, gpus = (new - old for new, old in zip(figures, now, strict=True))
        found.append(PricedMove(move.name, move.before, move.after, requests, longest, fixed, gpus, None))
    return tuple(found)


def remedies(begun: Begun, given: MemoryGiven) -> tuple[Remedy, ...]:
    """The single changes under which the start succeeds; where there is none, a limit lowered beside a change, and
    where that does not help, the fewest GPUs with which it does.
    """
    single = []
    double: dict[frozenset[str], Remedy] = {}
    for move in _applicable(begun):
        then = _turned(begun, given, move)
        if isinstance(then, str):
            continue
        if then.start.failure is None:
            single.append(Remedy(move.name, move.after, None, typed(move.flags)))
            continue
        for second in moves(then.plan, then.start):
            both = frozenset((move.name, second.name))
            if second.name in LIMITS and len(both) == 2 and both not in double:
                flags = {**move.flags, **second.flags}
                last = _turned(begun, given, second._replace(flags=flags))
                if isinstance(last, Begun) and last.start.failure is None:
                    double[both] = Remedy(move.name, move.after, (second.name, second.after), typed(flags))
    return tuple(single or double.values() or _with_more_gpus(begun, given))


def _with_more_gpus(begun: Begun, given: MemoryGiven) -> Iterator[Remedy]:
    for turn in wider(begun, given, lambda then: then.failure is None):
        ((name, width),) = turn.flags.items()
        yield Remedy(FLAG[name].option, str(width), None, turn.text)


def _applicable(begun: Begun) -> list[Move]:
    known = begun.memory.how != "estimated"
    return [move for move in moves(begun.plan, begun.start) if move.measured or not known]


def _turned(begun: Begun, given: MemoryGiven, move: Move) -> Begun | str:
    """The start with the knob turned, or why there is none."""
    try:
        return begin(begun.plan.with_flags(**move.flags), given, begun.plan)
    except KvplanError as error:
        return str(error)


def _figures(begun: Begun, contexts: Contexts) -> tuple[int, int, int, int]:
    start = begun.start
    return (
        served(start, contexts).requests,
        start.longest_context if start.failure is None else 0,
        fixed_cost(start.blocks).nbytes,
        begun.plan.gpus,
    )
