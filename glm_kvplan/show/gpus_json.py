"""`kvplan gpus --json` (schema: docs/json.md)."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from glm_kvplan.memory.gpu import Gpu


def document(cards: Sequence[Gpu]) -> dict[str, Any]:
    """Every card known with its fields."""
    return {"schema": "glm-kvplan/gpus", "schema_version": 1, "gpus": [asdict(card) for card in cards]}
