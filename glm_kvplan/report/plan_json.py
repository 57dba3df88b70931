"""What every JSON answer says of its plan: model, engine, GPU, deployment and how each flag came about."""

from dataclasses import fields
from typing import Any

from glm_kvplan import __version__
from glm_kvplan.planner import Plan


def plan_document(plan: Plan) -> dict[str, Any]:
    """The head of a JSON answer."""
    deployment = plan.deployment
    resolved = {field.name: getattr(deployment, field.name) for field in fields(deployment)}
    return {
        "kvplan": __version__,
        "model": {"name": plan.model.name, "origin": plan.model.origin},
        "engine": plan.profile.release,
        "gpu": {"name": plan.gpu.name, "memory_mib": plan.gpu.memory_mib, "assumed": plan.gpu_assumed},
        "deployment": {
            **resolved,
            "attn_tp_size": deployment.attn_tp_size,
            "slots_per_request": deployment.slots_per_request,
        },
        "notes": [*plan.notes, *plan.resolution.warnings],
    }


def choices_document(plan: Plan) -> dict[str, Any]:
    """`kvplan resolve --json`: one entry a flag, with its reason and source."""
    return {
        "schema": "glm-kvplan/resolve",
        "schema_version": 1,
        **plan_document(plan),
        "choices": [choice._asdict() for choice in plan.choices],
    }
