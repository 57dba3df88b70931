"""`kvplan engines --json`, with two names and without (schema: docs/json.md)."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from glm_kvplan.answers.diff.engines import EngineComparison
from glm_kvplan.engines.sglang.profile import EngineProfile


def list_document(profiles: Sequence[EngineProfile], installed: str | None) -> dict[str, Any]:
    """Every release known with its fields."""
    return {
        "schema": "glm-kvplan/engines",
        "schema_version": 1,
        "installed": installed,
        "engines": [asdict(profile) for profile in profiles],
    }


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
