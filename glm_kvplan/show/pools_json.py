"""`kvplan pools --json` (schema: docs/json.md)."""

from typing import Any

from glm_kvplan.engines.sglang.sizing.rank_pools import Rank
from glm_kvplan.engines.tensor import TensorSpec
from glm_kvplan.show.plan_json import plan_document


def document(rank: Rank) -> dict[str, Any]:
    """Every tensor of one rank, and how their bytes relate to the charge."""
    found = rank.attribution
    return {
        "schema": "glm-kvplan/pools",
        "schema_version": 1,
        **plan_document(rank.plan),
        **rank_document(rank),
        "tensors": [tensor_document(spec) for spec in rank.tensors],
        "allocated_bytes": found.allocated,
        "charged_bytes": found.charged,
        "difference": [{"name": part.name, "bytes": part.nbytes} for part in found.parts],
        "unexplained_bytes": found.rest,
    }


def rank_document(rank: Rank) -> dict[str, Any]:
    """Which rank it is, and the sizes of its pools."""
    return {
        "pp_rank": rank.pp_rank,
        "layers": [rank.stage.start, rank.stage.stop],
        "asked_sizes": rank.asked._asdict(),
        "sizes": rank.sizes._asdict(),
    }


def tensor_document(spec: TensorSpec) -> dict[str, Any]:
    """One tensor."""
    return {**spec._asdict(), "shape": list(spec.shape), "bytes": spec.nbytes}
