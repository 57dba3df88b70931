"""What two engine releases make of the same deployments of this model, in bytes."""

from dataclasses import asdict
from typing import NamedTuple

from glm_kvplan.engine.profile import EngineProfile
from glm_kvplan.planner import Plan, plan
from glm_kvplan.sizing.compare import Change, changes
from glm_kvplan.sizing.estimate import Workload


class EngineComparison(NamedTuple):
    """Profile fields that differ, and the changes they make to two typical deployments under one workload."""

    before: str
    after: str
    fields: tuple[tuple[str, object, object], ...]
    workload: Workload
    deployments: tuple[tuple[str, tuple[Change, ...]], ...]


_WORKLOAD = Workload(131072, 32)
_DEPLOYMENTS: dict[str, tuple[str, dict[str, object]]] = {
    "B200, --tp-size 4, MTP": ("b200", {"tp_size": 4, "speculative_algorithm": "EAGLE"}),
    "H200, --tp-size 8, FP8 rows": ("h200", {"tp_size": 8, "kv_cache_dtype": "fp8_e4m3"}),
}


def compare_engines(before: EngineProfile, after: EngineProfile) -> EngineComparison:
    """Compare two profiles field by field, and by what they allocate for a speculative and a plain deployment."""
    old, new = asdict(before), asdict(after)
    return EngineComparison(
        before.release,
        after.release,
        tuple((name, old[name], new[name]) for name in old if old[name] != new[name] and name != "release"),
        _WORKLOAD,
        tuple(
            (title, changes(_under(before, gpu, flags), _under(after, gpu, flags), _WORKLOAD))
            for title, (gpu, flags) in _DEPLOYMENTS.items()
        ),
    )


def _under(profile: EngineProfile, gpu: str, flags: dict[str, object]) -> Plan:
    return plan(flags, gpu=gpu, engine=profile)
