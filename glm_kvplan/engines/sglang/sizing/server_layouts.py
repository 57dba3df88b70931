"""Layouts of one server, and what each serves of its share of a load: what SGLang gives to `kvplan advise --gpus`."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from glm_kvplan.engines.fleet_values import Advised, OnHost
from glm_kvplan.engines.sglang.flags import FLAG
from glm_kvplan.engines.sglang.moves import MOST_TP, group_flags
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.sizing.advice import Advice, advise, served_within
from glm_kvplan.engines.sglang.sizing.pool_bounds import ceiling_tokens
from glm_kvplan.engines.sglang.sizing.server import Server
from glm_kvplan.engines.sglang.sizing.serving_host import UNKNOWN_HOSTS, Hosts
from glm_kvplan.engines.sglang.sizing.split import most_requests, tokens_of
from glm_kvplan.show.said import Text
from glm_kvplan.workload import Demand

if TYPE_CHECKING:
    from glm_kvplan.engines.sglang.sizing.host_answer import HostAnswer

MOST_REQUESTS = 1 << 16  # of one worker, where the most that a layout serves is looked for
_SIZES = frozenset(  # of the parallel layout
    name for name, flag in FLAG.items() if flag.group == FLAG["tp_size"].group and flag.kind == "int"
)


def server_layouts(plan: Plan, gpus: int, per_host: int) -> Iterator[dict[str, Any]]:
    """Tensor parallelism of one server, and its groups of DP attention; a server larger than a host takes several.

    Flags of the layout that the user gave stay as they are.
    """
    if not _SIZES.isdisjoint(plan.flags):
        ranks = plan.deployment.world_size
        several = ranks > per_host and ranks % per_host == 0 and plan.deployment.replicas == 1
        yield {"nnodes": ranks // per_host} if several and "nnodes" not in plan.flags else {}
        return
    width = 1
    while width <= min(gpus, MOST_TP):
        hosts = {"nnodes": width // per_host} if width > per_host else {}
        if gpus % width == 0 and (width <= per_host or width % per_host == 0):
            groups = 1
            while groups <= width:
                attention = group_flags(plan, groups) if groups > 1 else {}
                yield {"tp_size": width, **attention, **hosts}
                groups *= 2
        width *= 2


def advise_server(server: Server, share: Demand, hosts: Hosts = UNKNOWN_HOSTS) -> Advised:
    """The server with what serves the share, or as much of it as fits. Raises KvplanError."""
    keep_fraction = "mem_fraction_static" in server.plan.flags
    advice = advise(server, share, keep_fraction=keep_fraction, nearest=0, hosts=hosts)
    limit = "memory" if advice.shortage is None else advice.shortage.limit
    if advice.shortage is None and not advice.holds:
        limit = "host memory"
    advised = server.tried(**advice.flags) if advice.flags else None
    if advised is None:
        return Advised(server.plan, {}, False, 0, 0, limit, None, 0, 0, server.budget, _notes(server), lambda: 0)
    workers = server.deployment.attn_dp_size * server.deployment.replicas
    return Advised(
        plan=advised.plan,
        flags=advice.flags,
        holds=_holds(advice),
        served=advice.served.requests,
        most=workers * most_requests(advised, share._replace(concurrency=MOST_REQUESTS * workers)),
        limit=limit,
        sizes=advised.sizes,
        floor_tokens=tokens_of(advised, share, advice.served.per_worker),
        ceiling_tokens=ceiling_tokens(advised),
        memory=advised.budget,
        warnings=_notes(advised),
        at_least=lambda: served_within(server, share, advice, server.budget.error_gib)[0],
        admitted=workers * advised.sizes.running_requests,
        host=None if advice.host is None else _hosted(advice.host.answer),
    )


def _holds(advice: Advice) -> bool:
    """It serves the whole share, and memory stays for serving."""
    return advice.holds and advice.headroom.short <= 0


def _hosted(found: "HostAnswer") -> OnHost:
    available = None if found.fit is None else found.fit.available_bytes
    return OnHost(max(found.host_bytes), available, found.fits, found.plan.sizing == "automatic", found.given)


def _notes(server: Server) -> tuple[Text, ...]:
    return () if server.weights is None else server.weights.notes
