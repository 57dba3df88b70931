"""Host pools against the engine's own, record by record."""

import gzip
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from glm_kvplan.deployment.deployment import Deployment
from glm_kvplan.engine.profile import EngineProfile, load_profile
from glm_kvplan.errors import RefusedError
from glm_kvplan.model.loader import bundled_geometry
from glm_kvplan.sizing.host import HostPlan, host_pools
from glm_kvplan.sizing.sizes import PoolSizes

RECORDS = [
    json.loads(line) for line in gzip.open(Path(__file__).parent / "data" / "hicache.jsonl.gz", "rt", encoding="utf-8")
]
KINDS = sorted({record["kind"] for record in RECORDS})


def deployment_of(record: dict[str, Any]) -> Deployment:
    """The deployment a record's inputs describe (a decode server caches prefixes, or it could not use HiCache)."""
    given = record["inputs"]
    drafts = given["draft_tokens"]
    return Deployment(
        tp_size=given["tp_size"],
        linear_attn_tp_size=given["tp_size"],
        pp_size=given["pp"],
        page_size=record["page_size"],
        kv_layout=given["kv_layout"],
        mamba_ssm_dtype=given["ssm_dtype"] or "float32",
        disable_overlap_schedule=given["pp"] > 1,
        speculative_algorithm="EAGLE" if drafts else None,
        speculative_num_draft_tokens=drafts,
        max_draft_tokens=drafts,
        disaggregation_mode=given["disagg"],
        disaggregation_decode_extra_slots=given["extra_slots"] or 0,
        enable_hierarchical_cache=True,
        hicache_ratio=given["hicache_ratio"],
        hicache_size=given["hicache_size"],
        hicache_mem_layout=given["mem_layout"],
        hicache_io_backend=given["io_backend"],
        hicache_host_memory_fraction=given["host_memory_fraction"],
    )


def profile_of(record: dict[str, Any]) -> EngineProfile:
    return load_profile(record["engine"].removeprefix("sglang-"))


def plan_of(record: dict[str, Any]) -> HostPlan:
    given = record["inputs"]
    return host_pools(
        bundled_geometry(),
        deployment_of(record),
        profile_of(record),
        PoolSizes(given["tokens"], given["state_slots"], given["max_running_requests"]),
        host_available_bytes=given["host_available_bytes"],
        ranks=given["world_size"],
        stage=range(*given["stage_layers"]),
    )


def test_records_are_all_there() -> None:
    assert len(RECORDS) == 1393
    assert KINDS == ["auto", "budget", "kv", "layout", "pd_decode", "pd_prefill", "pp", "staging", "state"]
    assert sum("refused" in record for record in RECORDS) == 45


@pytest.mark.parametrize("kind", KINDS)
def test_every_record(kind: str) -> None:
    """Every number equal, every refusal refused at the engine's own file, nothing else refused."""
    for record in RECORDS:
        if record["kind"] != kind:
            continue
        if "refused" in record:
            with pytest.raises(RefusedError) as error:
                plan_of(record)
            assert record["refused"]["at"].split(":")[0] in error.value.source
            continue
        plan = plan_of(record)
        assert {pool.name for pool in plan.pools} == record["host"].keys()
        for pool in plan.pools:
            expected = record["host"][pool.name]
            assert pool.units == expected["size"]
            assert pool.pages == expected["page_num"]
            assert pool.page_size == expected["page_size"]
            assert pool.bytes_per_unit == expected["size_per_token"]
            assert pool.layers == expected["layer_num"]
            assert pool.row_bytes == expected.get("row_bytes", pool.row_bytes)
            assert pool.nbytes == pool.ledger.total == expected["bytes"]
        assert plan.nbytes == record["host_total_bytes"]
        assert ([list(plan.split)] if plan.split else []) == record["split"]
        if kind == "auto":
            assert (plan.sizing, plan.ratio) == ("automatic", record["auto_ratio"])
