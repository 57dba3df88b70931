"""`kvplan diff --json` (schema: docs/json.md)."""

from collections.abc import Sequence
from typing import Any

from glm_kvplan.report.plan_json import plan_document
from glm_kvplan.sizing.compare import Change
from glm_kvplan.sizing.compare_boots import Side


def document(a: Side, b: Side, found: Sequence[Change]) -> dict[str, Any]:
    """Both plans, and the changes from `a` to `b`, the most bytes first."""
    return {
        "schema": "glm-kvplan/diff",
        "schema_version": 1,
        "a": {"label": a.label, **plan_document(a.plan)},
        "b": {"label": b.label, **plan_document(b.plan)},
        "changes": [change._asdict() for change in found],
    }
