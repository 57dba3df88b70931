"""`kvplan diff --json` (schema: docs/json.md)."""

from collections.abc import Sequence
from typing import Any

from glm_kvplan.answers.diff.starts import Side
from glm_kvplan.engines.changes import Change
from glm_kvplan.show.plan_json import plan_document


def document(a: Side, b: Side, found: Sequence[Change]) -> dict[str, Any]:
    """Both plans, and the changes from `a` to `b`, the most bytes first."""
    return {
        "schema": "glm-kvplan/diff",
        "schema_version": 1,
        "a": {"label": a.label, **plan_document(a.plan)},
        "b": {"label": b.label, **plan_document(b.plan)},
        "changes": [change._asdict() for change in found],
    }
