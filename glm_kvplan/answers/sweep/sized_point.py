"""One point sized: what `boot` says of it, without the drawing and the words."""

from operator import attrgetter
from typing import Any, NamedTuple

from glm_kvplan.answers.sweep.bounded_cache import Memo
from glm_kvplan.answers.sweep.pool_law import PoolLaw, pool_law
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.deployment import SIZING, Deployment
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.rank import rank_of, ranks
from glm_kvplan.engines.sglang.sizing.binding_limits import binding
from glm_kvplan.engines.sglang.sizing.failures import refusal
from glm_kvplan.engines.sglang.sizing.headroom import judge
from glm_kvplan.engines.sglang.sizing.solver import attempt_stages
from glm_kvplan.engines.sglang.sizing.transients import transients
from glm_kvplan.memory.budget import MemoryBudget
from glm_kvplan.units import GIB

# Flags that no other resolved value depends on.
ALONE = frozenset(("mem_fraction_static", "mamba_full_memory_ratio", "max_mamba_cache_size", "context_length"))
# What neither the weights nor the tensors of given sizes depend on (the context length the law takes into account).
_NO_SHAPE = ALONE | {"max_running_requests", "max_total_tokens", "decode_graph_max_bs", "prefill_graph_max_bs"}
shape = attrgetter(*(name for name in SIZING if name not in _NO_SHAPE))


class Sized(NamedTuple):
    """The results of a point up to what is served, and what serving asks about."""

    results: tuple[Any, ...]
    deployment: Deployment
    sizes: PoolSizes
    requests_bound_by: str


def sized(plan: Plan, deployment: Deployment, budget: MemoryBudget, prompt: int | None, laws: Memo[PoolLaw]) -> Sized:
    """What the engine sizes for `deployment` (the plan's, or one with flags of ALONE changed) and what stays free.

    The numbers are those of `sizing.boot.boot`. Raises SizingError where the engine refuses, InputError for memory
    that cannot be.
    """
    pre_gib, available_gib = budget.pre_gib, budget.available_gib
    stages = ranks(rank_of(plan)._replace(deployment=deployment))
    solutions = attempt_stages(stages[0], pre_gib, available_gib)
    for solution in solutions:
        if solution.failure is not None:
            raise refusal(solution)
    key = shape(deployment)
    most, solution, law = -1, solutions[0], None
    for rank, candidate in zip(stages, solutions, strict=True):
        of_stage = laws((key, rank.profile.release, rank.stage), pool_law, rank)
        allocated = of_stage.device_bytes(deployment, candidate.sizes)
        if allocated > most:
            most, solution, law = allocated, candidate, of_stage
    assert law is not None
    usable = int(available_gib * GIB) - most + int(budget.returned_gib * GIB)
    needs = transients(
        stages[0],
        solution.sizes,
        free_bytes=usable,
        total_bytes=plan.gpu.memory_mib << 20 if budget.total_gib is not None else int(pre_gib * GIB),
        rocm=plan.gpu.vendor == "rocm",
        prompt_tokens=prompt,
    )
    verdict, _ = judge(usable, needs)
    tokens_bound_by, requests_bound_by = binding(solution)
    priced, requests = solution.costs, solution.running_requests
    results = (
        "ok",
        solution.tokens,
        solution.state_slots,
        requests,
        requests * deployment.attn_dp_size * deployment.replicas,
        tokens_bound_by,
        requests_bound_by,
        priced.cell_bytes,
        priced.slot_bytes + priced.ring_bytes,
        law.of_request(deployment),
        usable,
        needs.nbytes,
        usable / GIB,
        verdict,
        budget.certainty,
        deployment.world_size * deployment.replicas,
    )
    return Sized(results, deployment, solution.sizes, requests_bound_by)
