"""How many GPUs a load takes: layouts of a server, and copies of it side by side, on each number of GPUs."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from glm_kvplan.engines.sglang.flags import FLAG
from glm_kvplan.engines.sglang.moves import MOST_TP, group_flags
from glm_kvplan.engines.sglang.sizing.advice import Advice, advise
from glm_kvplan.engines.sglang.sizing.server import Server
from glm_kvplan.engines.sglang.sizing.split import most_requests, tokens_of
from glm_kvplan.errors import KvplanError
from glm_kvplan.workload import Demand

MOST_REQUESTS = 1 << 16  # of one worker, where the most that a layout serves is looked for
_SIZES = frozenset(  # of the parallel layout
    name for name, flag in FLAG.items() if flag.group == FLAG["tp_size"].group and flag.kind == "int"
)


class Fleet(NamedTuple):
    """`servers` copies of one server, each with its share of the load.

    `flags` are those of the layout and of what was tried beside it, `advice` has the rest. `most` is how many requests
    of the load all servers together can hold at once, `floor_tokens` what one worker's share of the load needs,
    `ceiling_tokens` what its memory gives.
    """

    servers: int
    gpus: int
    hosts: int
    flags: Mapping[str, Any]
    tried: int  # how many flags beside the layout are not the user's own
    server: Server  # with all flags
    advice: Advice
    served: int
    most: int
    floor_tokens: int
    ceiling_tokens: int

    @property
    def holds(self) -> bool:
        """It serves the whole load, and memory stays for serving."""
        return self.advice.holds and self.advice.headroom.short <= 0


def fleets(server: Server, demand: Demand, gpus: int, tries: Sequence[Mapping[str, Any]], per_host: int) -> list[Fleet]:
    """What `gpus` GPUs serve of the demand, the best first; every layout and every set of flags to try.

    What serves it all comes first, of that what leaves the user's own flags alone, then what can hold the most
    requests. Flags of the layout that the user gave stay as they are. Layouts that the engine refuses are left out.
    """
    found = []
    for layout in _layouts(server, gpus, per_host):
        for tried in tries:
            one = _fleet(server, demand, gpus, {**layout, **tried}, len(tried), per_host)
            if one is not None:
                found.append(one)
    return sorted(found, key=lambda one: (not one.holds, one.tried if one.holds else 0, -one.most, one.servers))


def _layouts(server: Server, gpus: int, per_host: int) -> Iterator[dict[str, Any]]:
    """Tensor parallelism of one server, and its groups of DP attention; a server larger than a host takes several."""
    given = server.plan.flags
    if not _SIZES.isdisjoint(given):
        if gpus % server.plan.gpus == 0:
            yield {}
        return
    width = 1
    while width <= min(gpus, MOST_TP):
        hosts = {"nnodes": width // per_host} if width > per_host else {}
        if gpus % width == 0 and (width <= per_host or width % per_host == 0):
            groups = 1
            while groups <= width:
                attention = group_flags(server, groups) if groups > 1 else {}
                yield {"tp_size": width, **attention, **hosts}
                groups *= 2
        width *= 2


def _fleet(server: Server, demand: Demand, gpus: int, flags: dict[str, Any], tried: int, per_host: int) -> Fleet | None:
    other = server.tried(**flags)
    if other is None or gpus % other.plan.gpus:
        return None
    servers, hosts = gpus // other.plan.gpus, -(-gpus // per_host)
    share = demand._replace(concurrency=-(-demand.concurrency // servers))
    try:
        advice = advise(other, share, nearest=0)
    except KvplanError:
        return None
    advised = other.tried(**advice.flags) if advice.flags else None
    if advised is None:
        return Fleet(servers, gpus, hosts, flags, tried, other, advice, 0, 0, 0, 0)
    workers = other.deployment.attn_dp_size * other.deployment.replicas
    unbound = advised.tried(max_total_tokens=None)
    return Fleet(
        servers=servers,
        gpus=gpus,
        hosts=hosts,
        flags=flags,
        tried=tried,
        server=advised,
        advice=advice,
        served=min(demand.concurrency, servers * advice.served.requests),
        most=servers * workers * most_requests(advised, demand._replace(concurrency=MOST_REQUESTS * workers)),
        floor_tokens=tokens_of(advised, demand, advice.served.per_worker),
        ceiling_tokens=advised.sizes.tokens if unbound is None else unbound.sizes.tokens,
    )
