"""`kvplan engines A B --json` (schema: docs/json.md)."""

from typing import Any

from glm_kvplan.sizing.compare_engines import EngineComparison


def document(comparison: EngineComparison) -> dict[str, Any]:
    """The fields that differ, and the changes by deployment."""
    return {
        "schema": "glm-kvplan/engines-diff",
        "schema_version": 1,
        "before": comparison.before,
        "after": comparison.after,
        "fields": [{"name": name, "before": old, "after": new} for name, old, new in comparison.fields],
        "workload": comparison.workload._asdict(),
        "deployments": [
            {"deployment": title, "changes": [change._asdict() for change in found]}
            for title, found in comparison.deployments
        ],
    }
