"""How many GPUs a load takes, and the launch command that serves it: the answer of `kvplan advise --gpus`."""

import shlex
from collections.abc import Mapping, Sequence
from itertools import product
from textwrap import indent
from typing import NamedTuple

from glm_kvplan.engines.answer_head import Head
from glm_kvplan.engines.flag_words import flag_lines
from glm_kvplan.engines.sglang.answers.advise_answer import DemandShown, show_demand
from glm_kvplan.engines.sglang.answers.plan_head import head_of
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.flags import FLAG
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.sizing.fleets import Fleet, fleets
from glm_kvplan.engines.sglang.sizing.server import Server
from glm_kvplan.errors import InputError
from glm_kvplan.memory.budget import MemoryBudget
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.model.loader import BUNDLED_ID, BUNDLED_ORIGIN
from glm_kvplan.show.said import Text
from glm_kvplan.workload import Demand

MOST_TRIES = 64
_OURS = frozenset(name for name, flag in FLAG.items() if flag.role in ("ours", "named"))


class FleetShown(NamedTuple):
    """`servers` copies of one server on `gpus` GPUs of `hosts` hosts; requests are those of all servers.

    A server of several hosts (`hosts_of_a_server`) has its command run on each of them.

    `flags` are all that the user did not give. `served` is how much of the demand they serve, `most` how many requests
    of it they could hold at once. Of one worker's tokens the load needs `floor_tokens`, memory gives `ceiling_tokens`.
    `limit` is what stops one more request, `memory` is one GPU's. `command` and `plan_file`, a deployment file for
    `kvplan check`, are those of one server.
    """

    gpus: int
    servers: int
    hosts: int
    hosts_of_a_server: int
    holds: bool
    served: int
    most: int
    limit: str
    layout: Text
    flags: Mapping[str, object]
    sizes: PoolSizes | None
    floor_tokens: int
    ceiling_tokens: int
    memory: MemoryBudget
    command: str
    plan_file: Mapping[str, object]


class FleetAnswer(NamedTuple):
    """`best` is the cheapest that serves the demand, `runner_up` the next; None where there is none.

    `layouts` has the best of each number of GPUs that was tried, whether it serves all or not. `head` is of the
    deployment as it was given, whose own layout counts for nothing here.
    """

    head: Head
    demand: DemandShown
    gpus_per_host: int
    holds: bool
    best: FleetShown | None
    runner_up: FleetShown | None
    layouts: tuple[FleetShown, ...]
    warnings: tuple[Text, ...]


def answer_fleet(
    plan: Plan,
    demand: Demand,
    given: MemoryGiven,
    gpus: Sequence[int],
    tries: Mapping[str, Sequence[object]],
    per_host: int | None = None,
) -> FleetAnswer:
    """The cheapest layout that serves the demand on one of these numbers of GPUs, fewest first.

    `tries` are flags with the values to try beside the user's own. Raises InputError for memory that was read (it is
    one layout's) and for more than 64 combinations to try.
    """
    if given.of_weights or given.pre_gib is not None:
        raise InputError("--gpus: memory that was read is one layout's; leave it out (--calibrate takes a boot)")
    hosts = per_host or plan.gpu.gpus_per_host
    ways = _ways(tries)
    server = Server(plan, given)
    shown: list[FleetShown] = []
    layouts: list[FleetShown] = []
    warnings: dict[Text, None] = {}
    for number in sorted(set(gpus)):
        found = fleets(server, demand, number, ways, hosts)
        holding = [one for one in found if one.holds]
        if found:
            layouts.append(_shown(plan, found[0]))
            warnings |= dict.fromkeys(_weight_notes(found[0]))
        shown += [_shown(plan, one) for one in holding[:2]]
    best = shown[0] if shown else None
    return FleetAnswer(
        head=head_of(plan),
        demand=show_demand(demand),
        gpus_per_host=hosts,
        holds=best is not None,
        best=best,
        runner_up=shown[1] if len(shown) > 1 else None,
        layouts=tuple(layouts),
        warnings=tuple(warnings),
    )


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


def _shown(plan: Plan, fleet: Fleet) -> FleetShown:
    advised, advice = fleet.server.plan, fleet.advice
    flags = {name: value for name, value in {**fleet.flags, **advice.flags}.items() if value is not None}
    return FleetShown(
        gpus=fleet.gpus,
        servers=fleet.servers,
        hosts=fleet.hosts,
        hosts_of_a_server=advised.deployment.nnodes,
        holds=fleet.holds,
        served=fleet.served,
        most=fleet.most,
        limit="memory" if advice.shortage is None else advice.shortage.limit,
        layout=head_of(advised).layout,
        flags=flags,
        sizes=None if advice.solution is None else advice.solution.sizes,
        floor_tokens=fleet.floor_tokens,
        ceiling_tokens=fleet.ceiling_tokens,
        memory=fleet.server.budget,
        command=launch_command(advised),
        plan_file=_plan_file(advised, -(-fleet.served // fleet.servers)),
    )


def _weight_notes(fleet: Fleet) -> tuple[Text, ...]:
    weights = fleet.server.weights
    return () if weights is None else weights.notes


def _model(plan: Plan) -> str:
    return plan.served or (BUNDLED_ID if plan.model.origin == BUNDLED_ORIGIN else plan.model.name)


def _plan_file(plan: Plan, requests: int) -> dict[str, object]:
    found: dict[str, object] = {
        "model": _model(plan),
        "engine": plan.profile.base_release,
        "gpu": plan.gpu.name,
        "flags": {name: value for name, value in plan.flags.items() if name != "nnodes"},
        "expect": {"max_running_requests": requests},
    }
    if plan.deployment.nnodes > 1:
        found["nodes"] = plan.deployment.nnodes
    if plan.environment:
        found["environment"] = dict(plan.environment)
    return found


def launch_command(plan: Plan) -> str:
    """The whole command that starts one server of `plan`, a flag a line. On several hosts it is run on each of them."""
    lines = [" ".join(f"{name}={shlex.quote(value)}" for name, value in plan.environment.items())]
    lines.append(f"python -m sglang.launch_server --model-path {shlex.quote(_model(plan))}")
    given = {name: value for name, value in {**plan.checked, **plan.flags}.items() if name not in _OURS}
    lines.append(indent(flag_lines(FLAG, given), "  ").lstrip())
    if plan.deployment.nnodes > 1:
        lines.append('--node-rank "$NODE_RANK" --dist-init-addr "$HEAD_NODE:20000"')
    return " \\\n  ".join(filter(None, lines))
