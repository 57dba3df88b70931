"""Flags that serve a workload, and the proof that they do: the answer of `kvplan advise`."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from glm_kvplan.certainty import Certainty
from glm_kvplan.engines.answer_head import Head
from glm_kvplan.engines.demand_shown import DemandShown, show_demand
from glm_kvplan.engines.flag import only_try
from glm_kvplan.engines.load_verdict import ServedNow
from glm_kvplan.engines.sglang.answers.plan_head import head_of
from glm_kvplan.engines.sglang.answers.served_now import served_now
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.sizing.advice import Advice, Shortage, advise, served_within
from glm_kvplan.engines.sglang.sizing.layouts import Layout
from glm_kvplan.engines.sglang.sizing.pool_bounds import ceiling_tokens, floor_sizes
from glm_kvplan.engines.sglang.sizing.remedies import require_memory
from glm_kvplan.engines.sglang.sizing.served_requests import Served, served
from glm_kvplan.engines.sglang.sizing.server import Server
from glm_kvplan.engines.sglang.sizing.serving_host import Hosts
from glm_kvplan.engines.sglang.sizing.start import boot
from glm_kvplan.memory.budget import MemoryBudget
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.show.said import Text
from glm_kvplan.workload import UNKNOWN_HOST, Demand, HostGiven

if TYPE_CHECKING:
    from glm_kvplan.engines.sglang.answers.host_shown import HostShown


class ServingShown(NamedTuple):
    """Bytes of the rank with the least left: what serving can take, what it needs, and how far that may be off."""

    free_bytes: int
    needed_bytes: int
    unsure_bytes: int


class AdviseAnswer(NamedTuple):
    """`served` is what the flags serve, `mean_served` if all lengths came by their shares.

    `servers` side by side with these flags serve it all, where one does not. `now` is what it serves as launched,
    `default_served` what the engine's own split does. `sizes` None: nothing starts. Of a worker's `sizes` the load
    needs `floor`, and memory gives `ceiling_tokens`. `host` are HiCache's pools under the flags, None without it.
    """

    head: Head
    demand: DemandShown
    flags: Mapping[str, object]
    holds: bool
    memory: MemoryBudget
    served: Served
    served_span: tuple[int, int]
    mean_served: int
    now: ServedNow
    default_served: Served
    sizes: PoolSizes | None
    floor: PoolSizes | None
    ceiling_tokens: int
    conversations_kept: int
    headroom: ServingShown
    shortage: Shortage | None
    servers: int | None
    layouts: tuple[Layout, ...]
    host: "HostShown | None"
    warnings: tuple[Text, ...]


def answer_advise(
    plan: Plan,
    demand: Demand,
    given: MemoryGiven,
    tries: Mapping[str, Sequence[object]] | None = None,
    host_given: HostGiven = UNKNOWN_HOST,
) -> AdviseAnswer:
    """The advice, its own solution, and what the engine's default split would have served.

    Of `tries`, values by flag, another dtype of the state is tried. Raises InputError for others.
    """
    state_dtype = only_try(tries, "mamba_ssm_dtype")
    server = Server(plan, given)
    require_memory(server)
    budget, weights = server.budget, server.weights
    found = advise(
        server,
        demand,
        state_dtype=None if state_dtype is None else str(state_dtype),
        keep_fraction="mem_fraction_static" in plan.flags,
        hosts=Hosts(host_given.serving(demand)),
    )
    start = boot(plan, given, demand.contexts.longest, host_given)
    advised = None if found.solution is None else server.tried(**found.flags)
    return AdviseAnswer(
        head=head_of(plan),
        demand=show_demand(demand),
        flags=found.flags,
        holds=found.holds,
        memory=budget,
        served=found.served,
        served_span=served_within(server, demand, found, budget.error_gib),
        mean_served=0 if advised is None else served(demand.as_mean, advised.deployment, advised.sizes).requests,
        now=served_now(plan, start, demand),
        default_served=found.default,
        sizes=None if found.solution is None else found.solution.sizes,
        floor=None if advised is None else floor_sizes(advised, demand),
        ceiling_tokens=0 if advised is None else ceiling_tokens(advised),
        conversations_kept=found.conversations_kept,
        headroom=ServingShown(found.headroom.usable, found.headroom.needed, found.headroom.unsure),
        shortage=found.shortage,
        servers=_servers(found, demand),
        layouts=found.layouts,
        host=_host(found, budget.certainty),
        warnings=() if weights is None else weights.notes,
    )


def _servers(found: Advice, demand: Demand) -> int | None:
    """Servers side by side that serve it all with the same flags; None where one does, or where they share a host's
    memory, which is not divided here.
    """
    served = found.served.requests
    if found.shortage is None or not served or found.headroom.short > 0 or found.host is not None:
        return None
    return -(-demand.concurrency // served)


def _host(found: Advice, certainty: Certainty) -> "HostShown | None":
    """HiCache's host pools; nothing of them is loaded where there are none."""
    if found.host is None:
        return None
    from glm_kvplan.engines.sglang.answers.host_shown import show_host

    return show_host(found.host.answer, certainty)
