"""How many GPUs a load takes, whatever the engine: layouts of a server, copies of it side by side, the cheapest first.

An engine says which layouts of a server there are, advises one for its share of the load, and writes its command.
"""

import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

from glm_kvplan.bisection import least
from glm_kvplan.engines.by_name import head_of
from glm_kvplan.engines.demand_shown import show_demand
from glm_kvplan.engines.fleet_values import Advised, FleetAnswer, FleetShown, Layouts, Unserved
from glm_kvplan.engines.protocol import Given, Plan
from glm_kvplan.engines.saved_plan import expected_of, model_named, plan_document
from glm_kvplan.errors import InputError, KvplanError
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.show.said import Text
from glm_kvplan.units import GIB
from glm_kvplan.workload import Demand

MOST_TRIES = 64
MOST_GPUS = 1024
_DOUBLED = 64  # GPUs up to which numbers are doubled where those asked for hold no request
_WAYS_FURTHER = 8  # combinations of what is tried, there
_Flags = Mapping[str, Any]


class _Fleet(NamedTuple):
    """Copies of one advised server; `tried` is how many flags beside its layout are not the user's own."""

    servers: int
    layout: _Flags  # with what was tried
    tried: int
    advised: Advised

    @property
    def most(self) -> int:
        return self.servers * self.advised.most

    @property
    def order(self) -> tuple[object, ...]:
        """What serves it all, of that what leaves the user's own flags alone, then what is sure to serve it within the
        memory's estimate, then what can hold the most requests.
        """
        holds = self.advised.holds
        unsure = holds and self.advised.at_least() < self.advised.served
        return (not holds, self.tried if holds else 0, unsure, -self.most, self.servers)


def seek(
    plan: Plan,
    demand: Demand,
    given: MemoryGiven,
    gpus: Sequence[int],
    tries: Mapping[str, Sequence[object]],
    per_host: int | None,
    engine: Layouts,
) -> FleetAnswer:
    """The cheapest layout that serves the demand on one of these numbers of GPUs, fewest first.

    `tries` are flags with the values to try beside the user's own. Layouts that the engine refuses are left out. Raises
    InputError for memory that was read (it is one layout's) and for more than 64 combinations to try.
    """
    if given.of_weights or given.pre_gib is not None:
        raise InputError("--gpus: memory that was read is one layout's; leave it out (--calibrate takes a boot)")
    hosts = per_host or plan.gpu.gpus_per_host
    ways = _ways(tries)
    shown: list[FleetShown] = []
    layouts: list[FleetShown] = []
    unserved: list[Unserved] = []
    warnings: dict[Text, None] = {}
    for number in sorted(set(gpus)):
        refused: list[Unserved] = []
        found = sorted(_fleets(plan, demand, number, ways, hosts, engine, refused), key=lambda one: one.order)
        if not any(one.most for one in found):
            unserved.append(_unserved(number, found, refused))
        made = [_shown(one, demand, number, hosts, engine, given.checkpoint) for one in found if one.advised.holds][:2]
        if found:
            layouts.append(made[0] if made else _shown(found[0], demand, number, hosts, engine, given.checkpoint))
            warnings |= dict.fromkeys(found[0].advised.warnings)
        shown += made
    best = shown[0] if shown else None
    return FleetAnswer(
        head=head_of(plan.given),
        demand=show_demand(demand),
        gpus_per_host=hosts,
        holds=best is not None,
        best=best,
        runner_up=shown[1] if len(shown) > 1 else None,
        kept=_kept(plan),
        serving_gpus=None if shown else _serving(plan, demand, gpus, ways, hosts, engine, layouts),
        unserved=tuple(unserved),
        layouts=tuple(layouts),
        warnings=tuple(warnings),
    )


def _kept(plan: Plan) -> tuple[str, ...]:
    """The launch's own numbers of the layout, as one would type them: an engine's table begins with these."""
    flags, given = plan.given.profile.engine.flags, plan.given.flags
    layout = (flag for flag in flags if flag.group == flags[0].group and flag.kind == "int")
    return tuple(flag.words(given[flag.name]) for flag in layout if flag.name in given)


def _unserved(gpus: int, found: Sequence[_Fleet], refused: Sequence[Unserved]) -> Unserved:
    """What is to be said of a number of GPUs whose servers hold no request, or do not start: of the largest of them."""
    dead = [
        Unserved(gpus, made.plan.gpus, made.failure or f"no request fits, bound by {made.limit}")
        for made in (one.advised for one in found)
    ]
    able = [*dead, *(one for one in refused if one.reason is not None)] or refused
    return max(able, key=lambda one: one.server_gpus or 0, default=Unserved(gpus, None, None))


def _serving(
    plan: Plan,
    demand: Demand,
    tried: Sequence[int],
    ways: Sequence[_Flags],
    per_host: int,
    engine: Layouts,
    layouts: Sequence[FleetShown],
) -> int | None:
    """A number of GPUs that serves where those tried do not: copies of their servers, or numbers doubled, are enough;
    below that, whole hosts and parts of one are tried, by halving.
    """

    def fleets(gpus: int) -> Iterator[_Fleet]:
        return _fleets(plan, demand, gpus, ways[:_WAYS_FURTHER], per_host, engine, [])

    def serves(gpus: int) -> bool:
        return any(one.advised.holds for one in fleets(gpus))

    able = [(one.gpus // one.servers, one.most // one.servers) for one in layouts if one.most]
    for number in (plan.gpus << power for power in range(_DOUBLED.bit_length())):
        if able or number > _DOUBLED:
            break
        able += [(one.advised.plan.gpus, one.advised.most) for one in fleets(number) if one.most]
    if not able:
        return None
    enough = min(MOST_GPUS, *(gpus * -(-demand.concurrency // most) for gpus, most in able))
    parts = {1 << power for power in range(per_host.bit_length())}
    whole = {*range(per_host, enough, per_host), *range(plan.gpus, enough, plan.gpus if plan.gpus > 1 else enough)}
    numbers = [*sorted(number for number in (parts | whole) - set(tried) if number < enough), enough]
    if not serves(enough):
        return None
    return numbers[least(lambda at: serves(numbers[at]), -1, len(numbers) - 1)]


def _ways(tries: Mapping[str, Sequence[object]]) -> list[dict[str, object]]:
    """Every combination of values, the user's own (nothing changed) first."""
    options = [[None, *values] for values in tries.values()]
    ways = [
        {name: value for name, value in zip(tries, chosen, strict=True) if value is not None}
        for chosen in product(*options)
    ]
    if len(ways) > MOST_TRIES:
        raise InputError(f"--try: {len(ways)} combinations; at most {MOST_TRIES} are tried")
    return ways


def _fleets(
    plan: Plan,
    demand: Demand,
    gpus: int,
    ways: Sequence[_Flags],
    per_host: int,
    engine: Layouts,
    refused: list[Unserved],
) -> Iterator[_Fleet]:
    """Every layout with every way that can be advised; the others are kept in `refused`."""
    for layout in engine.layouts(plan, gpus, per_host):
        for tried in ways:
            flags, size = {**layout, **tried}, None
            try:
                server: Plan = plan.with_flags(**flags)
                size = server.gpus
                if gpus % size:
                    refused.append(Unserved(gpus, size, None))
                    continue
                servers = gpus // server.gpus
                share = demand._replace(concurrency=-(-demand.concurrency // servers))
                yield _Fleet(
                    servers, flags, len(tried), engine.advise(server, share, _beside(servers, server.gpus, per_host))
                )
            except KvplanError as error:
                refused.append(Unserved(gpus, size, str(error)))


def _beside(servers: int, gpus: int, per_host: int) -> int:
    """Servers of so many GPUs that share a host."""
    return min(servers, max(1, per_host // gpus))


def _hosts(servers: int, plan: Plan, per_host: int) -> int:
    """Hosts of so many servers: each on whole hosts of its own, or as many on a host as it has the GPUs for."""
    if plan.gpus <= per_host:
        return -(-servers // (per_host // plan.gpus))
    return servers * max(plan.hosts, -(-plan.gpus // per_host))


def _shown(
    fleet: _Fleet, demand: Demand, gpus: int, per_host: int, engine: Layouts, checkpoint: str | None
) -> FleetShown:
    advised, servers = fleet.advised, fleet.servers
    flags = {name: value for name, value in {**fleet.layout, **advised.flags}.items() if value is not None}
    served = min(demand.concurrency, servers * advised.served)
    command = engine.command(advised.plan)
    words = set(command.split())
    return FleetShown(
        gpus=gpus,
        servers=servers,
        hosts=_hosts(servers, advised.plan, per_host),
        hosts_of_a_server=advised.plan.hosts,
        holds=advised.holds,
        served=served,
        served_at_least=min(served, servers * advised.at_least()),
        most=fleet.most,
        admitted=servers * advised.admitted,
        limit=advised.limit,
        layout=head_of(advised.plan).layout,
        flags=flags,
        sizes=advised.sizes,
        floor_tokens=advised.floor_tokens,
        ceiling_tokens=advised.ceiling_tokens,
        memory=advised.memory,
        host=None if advised.host is None else advised.host.times(_beside(servers, advised.plan.gpus, per_host)),
        command=command,
        left_out=tuple(option for option in advised.plan.others if option not in words),
        plan_file=_plan_file(advised, checkpoint, demand._replace(concurrency=-(-demand.concurrency // servers))),
    )


def model_word(plan: Given) -> str:
    """The model as one types it into a shell."""
    return shlex.quote(model_named(plan))


def _plan_file(advised: Advised, checkpoint: str | None, share: Demand) -> dict[str, object]:
    """The deployment file of one server for its share of the load, with the host that was planned for."""
    found = plan_document(advised.plan, share)
    memory: dict[str, object] = {} if checkpoint is None else {"checkpoint": checkpoint}
    if advised.host is not None and advised.host.available_bytes is not None:
        given = {"host_gib": advised.host.given.host_bytes, "pod_gib": advised.host.given.pod_bytes}
        memory |= {name: nbytes / GIB for name, nbytes in given.items() if nbytes is not None}
        found["expect"] = {**expected_of(share), "host_memory": "fits"}
    if memory:
        found["memory"] = memory
    return found
