"""`kvplan pools --json` and `kvplan validate --json` (schema: docs/json.md)."""

from typing import Any

from glm_kvplan.pools.rank import Rank
from glm_kvplan.pools.specs import TensorSpec
from glm_kvplan.pools.validate import Row, Validation, environment
from glm_kvplan.report.plan_json import plan_document


def pools_document(rank: Rank) -> dict[str, Any]:
    """Every tensor of one rank, and how their bytes relate to the charge."""
    found = rank.attribution
    return {
        "schema": "glm-kvplan/pools",
        "schema_version": 1,
        **plan_document(rank.plan),
        **_rank(rank),
        "tensors": [_tensor(spec) for spec in rank.tensors],
        "allocated_bytes": found.allocated,
        "charged_bytes": found.charged,
        "difference": [{"name": part.name, "bytes": part.nbytes} for part in found.parts],
        "unexplained_bytes": found.rest,
    }


def validate_document(rank: Rank, found: Validation) -> dict[str, Any]:
    """The verdict, every tensor beside its prediction, and the three measures."""
    return {
        "schema": "glm-kvplan/validate",
        "schema_version": 1,
        **plan_document(rank.plan),
        **_rank(rank),
        "environment": environment(),
        "device": found.device._asdict(),
        "built_by": found.built_by,
        "allocated_sizes": found.sizes._asdict(),
        "scale": float(found.scale),
        "free_bytes": found.free_bytes,
        "keep_free_bytes": found.keep_free,
        "touched": found.touched,
        "seconds": found.seconds,
        "tensors": [_row(row) for row in found.rows],
        "unexpected": list(found.unexpected),
        "predicted_bytes": found.predicted,
        "taken_bytes": found.taken,
        "measures": [measure._asdict() for measure in found.measures],
        "ok": found.ok,
    }


def _rank(rank: Rank) -> dict[str, Any]:
    return {
        "pp_rank": rank.pp_rank,
        "layers": [rank.stage.start, rank.stage.stop],
        "asked_sizes": rank.asked._asdict(),
        "sizes": rank.sizes._asdict(),
    }


def _tensor(spec: TensorSpec) -> dict[str, Any]:
    return {**spec._asdict(), "shape": list(spec.shape), "bytes": spec.nbytes}


def _row(row: Row) -> dict[str, Any]:
    taken = row.taken
    return {
        **_tensor(row.spec),
        "taken": None if taken is None else {**taken._asdict(), "shape": list(taken.shape)},
        "equal": row.equal,
    }
