"""`kvplan validate --json` (schema: docs/json.md)."""

from typing import Any

from glm_kvplan.allocate.validation import Row, Validation, environment
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.sizing.rank_pools import RankPools
from glm_kvplan.show.plan_json import plan_document
from glm_kvplan.show.pools_json import rank_document, tensor_document


def document(pools: RankPools, found: Validation[PoolSizes]) -> dict[str, Any]:
    """The verdict, every tensor beside its prediction, and the three measures."""
    return {
        "schema": "glm-kvplan/validate",
        "schema_version": 1,
        **plan_document(pools.plan),
        **rank_document(pools),
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


def _row(row: Row) -> dict[str, Any]:
    taken = row.taken
    return {
        **tensor_document(row.spec),
        "taken": None if taken is None else {**taken._asdict(), "shape": list(taken.shape)},
        "equal": row.equal,
    }
