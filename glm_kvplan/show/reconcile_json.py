"""`kvplan reconcile --json`: the same in fields. Printed numbers stay the text that was printed."""

from typing import Any

from glm_kvplan.engines.sglang.boot_log.reconciliation import Reconciliation
from glm_kvplan.show.plan_json import plan_document
from glm_kvplan.show.reconcile_words import notes, verdict


def document(answer: Reconciliation, likely: tuple[str, ...], number: int, count: int) -> dict[str, Any]:
    """The whole answer."""
    sizing = answer.sizing
    head = plan_document(answer.plan)
    head["gpu"]["assumed"] = answer.gpu_guessed
    head["gpu"]["unknown"] = answer.gpu_unknown
    return {
        "schema": "glm-kvplan/reconcile",
        "schema_version": 1,
        **head,
        "boot": {
            "origin": answer.boot.origin,
            "number": number,
            "count": count,
            "ranks": len(answer.boot.ranks),
            "ready": answer.boot.ready,
            "refusal": answer.boot.failure,
        },
        "engine_chosen": answer.chosen,
        "explained": answer.explained,
        "verdict": verdict(answer),
        "likely_causes": list(likely),
        "boot_notes": notes(answer),
        "memory": None if sizing.memory is None else sizing.memory._asdict(),
        "available_gib_of_printed_sizes": None if sizing.band is None else list(sizing.band),
        "sizes_per_rank": None if sizing.sizes is None else sizing.sizes._asdict(),
        "rows": [row._asdict() for row in answer.rows],
        "engines_tried": [fit._asdict() for fit in answer.fits],
    }
