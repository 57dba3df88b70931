"""One point of a sweep: what `solve` says of a server, without the drawing and the words."""

from typing import Any, NamedTuple

from glm_kvplan.engines.sglang.checks.judgements import longest_context
from glm_kvplan.engines.sglang.components import row_bytes, slot_bytes
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.sizing.binding_limits import binding
from glm_kvplan.engines.sglang.sizing.headroom import judge
from glm_kvplan.engines.sglang.sizing.served_requests import check_demand, served, slots_of_request
from glm_kvplan.engines.sglang.sizing.server import Server
from glm_kvplan.engines.sweep_columns import COMMON, UPPER_BOUND, Column
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.show.said import say
from glm_kvplan.units import GIB
from glm_kvplan.workload import Demand

CONTEXT_FLAG = "context_length"
ADVICE = {
    "estimated": say("memory is estimated: --pre-gib and --available-gib make the sizes exact"),
    UPPER_BOUND: say("the draft model is not known: every size is an upper bound (--draft-config)"),
}
COLUMNS = (
    *COMMON,
    Column("max_total_num_tokens", "int", "tokens of its pool", "worker", say("tokens per worker")),
    Column("max_mamba_cache_size", "int", "its state slots", "worker", say("slots per worker"), 2),
    Column("max_running_requests", "int", "its running requests", "worker", say("requests per worker"), 4),
    Column("total_requests", "int", "running requests of all workers", "deployment"),
    Column("tokens_bound_by", "text", "what limits the tokens", "worker"),
    Column("requests_bound_by", "text", "what limits the running requests", "worker"),
    Column("slot_bytes", "int", "bytes charged for one state slot", "GPU"),
    Column("row_bytes", "int", "bytes of one running request beside its slots and tokens", "GPU"),
    Column("free_bytes", "int", "bytes serving can take once the pools exist", "GPU"),
    Column("needed_bytes", "int", "bytes serving needs of them (estimated)", "GPU"),
    Column("free_gib", "float", "free_bytes in GiB", "GPU", say("GiB free per GPU"), 3),
    Column("headroom", "text", "fits, tight or short", "GPU", say("headroom"), 1),
)


class Point(NamedTuple):
    """A server that starts (see `sweep_columns.Point`)."""

    server: Server
    gpus: int
    longest: int
    cache_bytes: int
    row_bytes: int
    slot_bytes: int
    requests_bound_by: str
    own: tuple[Any, ...]  # from COMMON on

    @property
    def context_length(self) -> int:
        return self.server.deployment.context_length

    def values(self, demand: Demand) -> tuple[Any, ...]:
        server, gpus = self.server, self.gpus
        requests, limit = self._served(demand)
        costs, page = server.solution.costs, server.deployment.page_size
        fixed = slots_of_request(demand, server.deployment) * self.slot_bytes + self.row_bytes
        context = demand.contexts.longest
        return (
            gpus,
            requests,
            requests / gpus,
            limit,
            self.longest,
            -(-context // page) * page * costs.cell_bytes + fixed,
            fixed,
            costs.cell_bytes,
            self.cache_bytes,
            server.budget.certainty,
            *self.own,
        )

    def _served(self, demand: Demand) -> tuple[int, str]:
        """Requests of the demand at once, and what stops one more. Raises InputError where nothing could serve it."""
        deployment = self.server.deployment
        check_demand(demand, deployment)
        answer = served(demand, deployment, self.server.sizes)
        return answer.requests, self.requests_bound_by if answer.limit == "running requests" else answer.limit


def size_point(plan: Plan, given: MemoryGiven, prompt_tokens: int | None) -> Point:
    """Start `plan` with this memory. Raises SizingError where the engine refuses, InputError for memory that cannot be
    or of which too little is known.
    """
    server = Server(plan, given)
    if server.failed is not None:
        raise server.refusal()
    deployment, solution, usable = server.deployment, server.solution, server.usable
    needs = server.needs(prompt_tokens)
    verdict, _ = judge(usable, needs)
    tokens_bound_by, requests_bound_by = binding(solution)
    costs, requests, row = solution.costs, solution.running_requests, row_bytes(server.ranks[server.stage])
    own = (
        solution.tokens,
        solution.state_slots,
        requests,
        requests * deployment.attn_dp_size * deployment.replicas,
        tokens_bound_by,
        requests_bound_by,
        costs.slot_bytes + costs.ring_bytes,
        row,
        usable,
        needs.nbytes,
        usable / GIB,
        verdict,
    )
    return Point(
        server,
        plan.gpus,
        longest_context(deployment, server.sizes),
        server.cache_bytes,
        row,
        slot_bytes(server.ranks[server.stage]),
        requests_bound_by,
        own,
    )
