"""`kvplan advise --json` (schema: docs/json.md)."""

from collections.abc import Sequence
from typing import Any

from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.sizing.advice import Advice
from glm_kvplan.engines.sglang.sizing.served_requests import Demand
from glm_kvplan.memory.budget import MemoryBudget
from glm_kvplan.show.plan_json import plan_document


def document(
    plan: Plan,
    demand: Demand,
    answer: Advice,
    budget: MemoryBudget,
    span: tuple[int, int],
    weight_notes: Sequence[str],
) -> dict[str, Any]:
    """The advice, its own solution, and what the engine's default split would have served."""
    solution = answer.solution
    return {
        "schema": "glm-kvplan/advise",
        "schema_version": 1,
        **plan_document(plan, weight_notes),
        "demand": {
            "concurrency": demand.concurrency,
            "longest_context": demand.contexts.longest,
            "mean_context": demand.contexts.mean,
            "checkpoints": demand.checkpoints,
        },
        "flags": answer.flags,
        "holds": answer.holds,
        "memory": {
            "pre_gib": budget.pre_gib,
            "available_gib": budget.available_gib,
            "how": budget.how,
            "error_gib": budget.error_gib,
            "certainty": budget.certainty,
        },
        "served": answer.served._asdict(),
        "served_span": list(span),
        "default_served": answer.default._asdict(),
        "sizes_per_rank": None if solution is None else solution.sizes._asdict(),
        "conversations_kept": answer.conversations_kept,
        "room": answer.room._asdict(),
        "shortage": None if answer.shortage is None else answer.shortage._asdict(),
        "layouts": [{**nearby._asdict(), "served": nearby.served._asdict()} for nearby in answer.layouts],
    }
