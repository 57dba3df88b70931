"""What every JSON answer says of its plan: model, engine, GPU and deployment."""

from collections.abc import Sequence
from typing import Any

from glm_kvplan import __version__
from glm_kvplan.engines.sglang.deployment import SIZING
from glm_kvplan.engines.sglang.plan import Plan


def plan_document(plan: Plan, more_notes: Sequence[str] = ()) -> dict[str, Any]:
    """The head of a JSON answer; `more_notes` are the answer's own, beside the plan's."""
    deployment = plan.deployment
    resolved = dict(zip(SIZING, deployment.sizing, strict=True))
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
        "notes": [*plan.notes, *plan.deployment.warnings, *more_notes],
    }
