"""Where a demand does not fit: other layouts of one server on which it does."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from glm_kvplan.engines.sglang.knob_search import Wish
from glm_kvplan.engines.sglang.moves import MOVE, MOVES, group_flags
from glm_kvplan.engines.sglang.sizing.served_requests import Served, check_demand, served
from glm_kvplan.engines.sglang.sizing.server import Server
from glm_kvplan.engines.sglang.sizing.serving_host import UNKNOWN_HOSTS, Hosts, host_advice
from glm_kvplan.engines.sglang.sizing.split import requests_wanted, split_for
from glm_kvplan.errors import KvplanError
from glm_kvplan.workload import Demand


class Layout(NamedTuple):
    """Another layout that serves the whole demand."""

    changes: dict[str, Any]  # flags to change, under the engine's argument names
    gpus: int
    served: Served
    flags: dict[str, Any]  # everything to type: the plan's own flags, the changes, and the split that serves
    estimated: bool = False  # memory was read for other weights a rank, and is estimated for these


def serving_layouts(server: Server, demand: Demand, most: int, hosts: Hosts = UNKNOWN_HOSTS) -> list[Layout]:
    """Layouts that serve the whole demand: fewest GPUs first, then those without another dtype, then fewest changes;
    none that only adds to another, or has more groups than it.

    With HiCache none whose host pools do not fit; where less of them is what lets it, the changes say so.
    """
    found: list[Layout] = []
    tried: list[tuple[int, set[tuple[str, Any]]]] = []  # groups and switches of those found
    for groups, switch, changes in sorted(_candidates(server), key=_order):
        if len(found) >= most:
            break
        if any(fewer <= groups and less <= switch.items() for fewer, less in tried):
            continue
        try:
            other = server.with_flags(**changes)
            check_demand(demand, other.deployment)
        except KvplanError:
            continue
        split = split_for(other, demand, requests_wanted(other, demand))
        if split is None:
            continue
        host = host_advice(split, hosts)
        lowered = {} if host is None else host.flags
        if host is None or host.answer.fits:
            gpus = other.deployment.world_size * other.deployment.replicas
            got = served(demand, split.deployment, split.sizes)
            tried.append((groups, {*switch.items()}))
            flags = {**split.plan.flags, **lowered}
            found.append(Layout({**changes, **lowered}, gpus, got, flags, other.memory_moved))
    return found


def _order(one: tuple[int, dict[str, Any], dict[str, Any]]) -> tuple[int, bool, int]:
    _, switch, changes = one
    return changes.get("tp_size", 0), bool(switch), len(changes)


def _candidates(server: Server) -> Iterator[tuple[int, dict[str, Any], dict[str, Any]]]:
    """Each layout with each single switch of a dtype or of speculation's memory: its groups, the switch, all changes.

    More than twice the groups are tried alone, and on twice the GPUs at most.
    """
    switches: list[dict[str, Any]] = [{}]
    for move in MOVES:
        if move.kind == "switch":
            switches += [way.flags(value) for way in move.ways(server, Wish()) for value in way.values]
    deployment = server.deployment
    gpus = [flags["tp_size"] for way in MOVE["tp_size"].ways(server, Wish()) for flags in map(way.flags, way.values)]
    for tp in (deployment.tp_size, *gpus):
        wider = {"tp_size": tp} if tp > deployment.tp_size else {}
        groups = now = deployment.attn_dp_size
        while groups == now or (tp % groups == 0 and deployment.replicas == 1):
            layout = wider if groups == now else {**group_flags(server.plan, groups), **wider}
            beside = switches if groups <= 2 * now else [{}] if tp <= 2 * deployment.tp_size else []
            yield from ((groups, switch, layout | switch) for switch in beside if layout or switch)
            groups *= 2
