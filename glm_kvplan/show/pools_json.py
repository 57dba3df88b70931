"""`kvplan pools --json` (schema: docs/json.md)."""

from typing import Any

from glm_kvplan.engines.sglang.sizing.rank_pools import RankPools
from glm_kvplan.show.plan_json import plan_document
from glm_kvplan.tensor import TensorSpec


def document(pools: RankPools) -> dict[str, Any]:
    """Every tensor of one rank, and how their bytes relate to the charge."""
    found = pools.attribution
    return {
        "schema": "glm-kvplan/pools",
        "schema_version": 1,
        **plan_document(pools.plan),
        **rank_document(pools),
        "tensors": [tensor_document(spec) for spec in pools.tensors],
        "allocated_bytes": found.allocated,
        "charged_bytes": found.charged,
        "difference": [{"name": part.name, "bytes": part.nbytes} for part in found.parts],
        "unexplained_bytes": found.rest,
    }


def rank_document(pools: RankPools) -> dict[str, Any]:
    """Which rank it is, and the sizes of its pools."""
    return {
        "pp_rank": pools.pp_rank,
        "layers": [pools.stage.start, pools.stage.stop],
        "asked_sizes": pools.asked._asdict(),
        "sizes": pools.sizes._asdict(),
    }


def tensor_document(spec: TensorSpec) -> dict[str, Any]:
    """One tensor."""
    return {**spec._asdict(), "shape": list(spec.shape), "bytes": spec.nbytes}
