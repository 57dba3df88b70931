"""`kvplan estimate --json` (schema: docs/json.md; a field's meaning never changes within a schema version)."""

from typing import TYPE_CHECKING, Any

from glm_kvplan.answers.pictures.pool_bars import pool_map
from glm_kvplan.engines.component import Ledger
from glm_kvplan.engines.sglang.components.decode_overrun import decode_overrun
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.sizing.estimate import Estimate, RankEstimate
from glm_kvplan.show.host_json import host_document, overrun_document
from glm_kvplan.show.plan_json import plan_document

if TYPE_CHECKING:
    from glm_kvplan.engines.sglang.sizing.host_answer import HostAnswer


def document(plan: Plan, answer: Estimate, host: "HostAnswer | None" = None) -> dict[str, Any]:
    """The whole answer in plain bytes."""
    rank = answer.largest.rank
    overrun = decode_overrun(rank, answer.sizes)
    drawn = pool_map(plan, rank, answer.sizes, 0 if host is None else host.plan.staging_bytes)
    return {
        "schema": "glm-kvplan/estimate",
        "schema_version": 1,
        **plan_document(plan),
        "workload": answer.workload._asdict(),
        "need_per_rank": answer.need._asdict(),
        "sizes_per_rank": answer.sizes._asdict(),
        "ranks": answer.ranks,
        "ranks_per_stage": answer.ranks_per_stage,
        "allocated_bytes_all_ranks": answer.allocated_everywhere,
        "stages": [_stage(rank) for rank in answer.stages],
        "memory_map": {
            "total_bytes": drawn.total,
            "segments": [segment._asdict() for segment in drawn.segments],
        },
        "host": host_document(host),
        "decode_overrun": overrun_document(overrun),
    }


def _stage(rank: RankEstimate) -> dict[str, Any]:
    attribution = rank.attribution
    return {
        "layers": [rank.stage.start, rank.stage.stop],
        "ledgers": [_ledger(ledger) for ledger in rank.ledgers],
        "charged_bytes": attribution.charged,
        "allocated_bytes": attribution.allocated,
        "difference": [{"name": part.name, "bytes": part.nbytes} for part in attribution.parts],
        "certainty": "exact",
    }


def _ledger(ledger: Ledger) -> dict[str, Any]:
    account = ledger.account
    return {
        "name": account.name,
        "unit": account.unit,
        "bytes_per_unit": ledger.bytes_per_unit,
        "written_bytes_per_unit": ledger.written,
        "units": ledger.units,
        "total_bytes": ledger.total,
        "formula": account.formula,
        "terms": dict(ledger.terms),
        "source": account.source,
        "charged": account.charged,
        "backed_up": account.backed_up,
    }
