"""What a server lacks of what is expected of it, and the changes that are tried of it."""

from collections.abc import Mapping
from typing import Any

from glm_kvplan.engines.expectations import Change, Expectations
from glm_kvplan.engines.sglang.checks.judgements import figures, longest_context, resident
from glm_kvplan.engines.sglang.knob_search import Lack, lacking_to_start
from glm_kvplan.engines.sglang.moves import typed
from glm_kvplan.engines.sglang.sizing.binding_limits import binding
from glm_kvplan.engines.sglang.sizing.headroom import judge
from glm_kvplan.engines.sglang.sizing.server import Server
from glm_kvplan.units import GIB

SERVES = "enough memory to serve from"  # kept like an expectation, though no file needs to name it


def more_memory(gib: float, then_short: tuple[str, ...]) -> Change:
    """A change of memory, with its words."""
    return Change({}, f"{gib:.2f} GiB more free on each GPU after the load", gib, then_short)


def flags_changed(flags: Mapping[str, Any]) -> Change:
    """A change of flags that move no GPU's memory."""
    return Change(flags, typed(dict(flags)))


def change(flags: Mapping[str, Any], server: Server, other: Server, then_short: tuple[str, ...] = ()) -> Change:
    """A change of flags that makes `server` the `other` one, with its words."""
    gpus, now = other.plan.gpus, server.plan.gpus
    text = typed(dict(flags)) + ("" if gpus == now else f" on {gpus} GPUs, not {now}")
    text += " (its memory estimated)" if other.memory_moved else ""
    return Change(flags, text, 0.0, then_short, other.memory_moved)


def lacking(server: Server, expect: Expectations) -> dict[str, Lack]:
    """The expectations that a server falls short of, each with what it is short of; SERVES and `boots` among them.

    Of a server that does not start: `boots` alone.
    """
    for first in lacking_to_start(server):
        return {"boots": first}
    found: dict[str, Lack] = {}
    if server.usable < 0:
        found["boots"] = "free"
    for name, figure in figures(expect, server.deployment, server.sizes).items():
        if figure < getattr(expect, name):
            found[name] = _short_of(name, server, expect)
    verdict, _ = judge(server.usable, server.needs(expect.longest))
    if verdict == "short":
        found[SERVES] = "free"
    wanted = expect.headroom
    if wanted is not None and (verdict == "short" if isinstance(wanted, str) else server.unallocated / GIB < wanted):
        found["headroom"] = "free"
    return found


def _short_of(name: str, server: Server, expect: Expectations) -> Lack:
    deployment, sizes = server.deployment, server.sizes
    bound = "tokens"
    if name == "min_context" and longest_context(deployment, sizes) == deployment.context_length:
        return "context"
    if name == "min_concurrency":
        bound = resident(expect.lengths, deployment, sizes).limit
        if bound == "context length":
            return "context"
    if name == "max_running_requests" or bound == "running requests":
        bound = binding(server.solution)[1]
    return "tokens" if bound in ("tokens", "token pool") else "slots" if bound == "state slots" else "requests"
