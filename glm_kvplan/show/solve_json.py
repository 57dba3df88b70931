"""`kvplan solve --json` (schema: docs/json.md)."""

from math import isfinite
from typing import Any

from glm_kvplan.engines.sglang.components.decode_overrun import decode_overrun
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.rank import rank_of
from glm_kvplan.engines.sglang.sizing.binding_limits import Limits
from glm_kvplan.engines.sglang.sizing.prices import Price
from glm_kvplan.engines.sglang.sizing.start import Boot
from glm_kvplan.show.host_json import host_document, overrun_document
from glm_kvplan.show.plan_json import plan_document


def document(plan: Plan, answer: Boot, priced: list[Price] | None) -> dict[str, Any]:
    """The whole answer; where the engine refuses, `failure` is set and the sizes stop at the failing step."""
    solution = answer.solution
    found: dict[str, Any] = {
        "schema": "glm-kvplan/solve",
        "schema_version": 1,
        **plan_document(plan, answer.weight_notes),
        "memory": {**answer.budget._asdict(), "parts": [part._asdict() for part in answer.budget.parts]},
        "max_total_num_tokens": solution.tokens,
        "max_mamba_cache_size": solution.state_slots,
        "max_running_requests": solution.running_requests,
        "span": [None if sizes is None else sizes._asdict() for sizes in answer.span],
        "steps": {name: value for name, value in solution._asdict().items() if name not in ("costs", "failure")},
        "costs": solution.costs._asdict(),
        "certainty": answer.budget.certainty,
        "failure": None,
        "remedies": [remedy._asdict() for remedy in answer.remedies],
    }
    if answer.failure is not None:
        failure = answer.failure
        found["failure"] = {
            "kind": failure.kind,
            "reason": failure.reason,
            "source": failure.source,
            "missing_bytes": failure.missing_bytes,
        }
        return found
    assert answer.limits is not None and answer.map is not None
    assert answer.needs is not None and answer.headroom is not None
    found["limits"] = _limits(answer.limits)
    found["memory_map"] = {
        "total_bytes": answer.map.total,
        "segments": [segment._asdict() for segment in answer.map.segments],
    }
    found["needs"] = {
        "prompt_tokens": answer.needs.prompt_tokens,
        "largest_context": answer.needs.largest_context,
        "unsure_bytes": answer.needs.unsure_bytes,
        "items": [item._asdict() for item in answer.needs.items],
    }
    found["headroom"] = answer.headroom._asdict()
    found["host"] = host_document(answer.host, found["certainty"])
    overrun = decode_overrun(rank_of(plan, answer.stage), solution.sizes)
    found["decode_overrun"] = overrun_document(overrun)
    if priced is not None:
        found["prices"] = [price._asdict() for price in priced]
    return found


def _limits(limits: Limits) -> dict[str, Any]:
    rate = limits.tokens_per_slot
    return {
        "tokens": [limit._asdict() for limit in limits.tokens],
        "requests": [limit._asdict() for limit in limits.requests],
        "state_slots": limits.slots._asdict(),
        "tokens_per_slot": rate if isfinite(rate) else None,
    }
