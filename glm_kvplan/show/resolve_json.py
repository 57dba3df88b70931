"""`kvplan resolve --json` (schema: docs/json.md)."""

from typing import Any

from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.show.plan_json import plan_document


def document(plan: Plan) -> dict[str, Any]:
    """One entry a flag, with its reason and source."""
    return {
        "schema": "glm-kvplan/resolve",
        "schema_version": 1,
        **plan_document(plan),
        "choices": [choice._asdict() for choice in plan.choices],
    }
