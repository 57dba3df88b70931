"""What two engine releases make of the same deployments of this model, in bytes."""

from collections.abc import Iterator
from typing import NamedTuple

from glm_kvplan.engines.changes import Change, byte_changes, unit_changes
from glm_kvplan.engines.planner import plan
from glm_kvplan.engines.sglang.deployment import SIZING
from glm_kvplan.engines.sglang.flags import missing_in
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.profile import EngineProfile
from glm_kvplan.engines.sglang.sizing.workload_cost import Estimate, RankEstimate, Workload, estimate


class FieldChange(NamedTuple):
    """One field of the profiles that differs."""

    name: str
    before: object
    after: object


class DeploymentChanges(NamedTuple):
    deployment: str
    changes: tuple[Change, ...]


class EngineComparison(NamedTuple):
    """Profile fields that differ, and the changes they make to two typical deployments under one workload."""

    before: str
    after: str
    fields: tuple[FieldChange, ...]
    workload: Workload
    deployments: tuple[DeploymentChanges, ...]


_WORKLOAD = Workload(131072, 32)
_DEPLOYMENTS: dict[str, tuple[str, dict[str, object]]] = {
    "B200, --tp-size 4, MTP": ("b200", {"tp_size": 4, "speculative_algorithm": "EAGLE"}),
    "H200, --tp-size 8, FP8 rows": ("h200", {"tp_size": 8, "kv_cache_dtype": "fp8_e4m3"}),
}


def compare_engines(before: EngineProfile, after: EngineProfile) -> EngineComparison:
    """Compare two profiles field by field, and by what they allocate for a speculative and a plain deployment."""
    old, new = _fields(before), _fields(after)
    return EngineComparison(
        before.release,
        after.release,
        tuple(FieldChange(name, old[name], new[name]) for name in old if old[name] != new[name] and name != "release"),
        _WORKLOAD,
        tuple(
            DeploymentChanges(title, _changes(_under(before, gpu, flags), _under(after, gpu, flags), _WORKLOAD))
            for title, (gpu, flags) in _DEPLOYMENTS.items()
        ),
    )


def _fields(profile: EngineProfile) -> dict[str, object]:
    return {**profile._asdict(), "missing_flags": " ".join(sorted(missing_in(profile.base_release)))}


def _changes(a: Plan, b: Plan, workload: Workload) -> tuple[Change, ...]:
    """Everything that differs from `a` to `b` under one workload, the most bytes first, flags last."""
    before, after = estimate(a, workload), estimate(b, workload)
    found = [
        *_rank(before, after),
        *byte_changes("tensor", _tensors(before.largest), _tensors(after.largest)),
        *unit_changes(before.largest.ledgers, after.largest.ledgers),
        *_flags(a, b),
    ]
    return tuple(sorted(found, key=lambda change: -abs(change.nbytes)))


def _rank(a: Estimate, b: Estimate) -> Iterator[Change]:
    old, new = a.largest.attribution.allocated, b.largest.attribution.allocated
    if old != new:
        yield Change("rank", "allocated on a rank", old, new, new - old)


def _tensors(rank: RankEstimate) -> dict[str, int]:
    return {tensor.name: tensor.nbytes for tensor in rank.tensors if tensor.place == "device"}


def _flags(a: Plan, b: Plan) -> Iterator[Change]:
    for name, before, after in zip(SIZING, a.deployment.sizing, b.deployment.sizing, strict=True):
        if before != after:
            yield Change("flag", name, before, after)


def _under(profile: EngineProfile, gpu: str, flags: dict[str, object]) -> Plan:
    made: Plan = plan(flags, gpu=gpu, engine=profile)
    return made
