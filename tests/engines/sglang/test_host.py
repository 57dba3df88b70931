"""Host pools against the engine's own, record by record."""

import gzip
import json
from dataclasses import replace
from typing import Any

import pytest
from hand_counted import one_rank
from paths import DATA

from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.engines.sglang.profile import EngineProfile, load_profile, releases
from glm_kvplan.engines.sglang.rank import Rank, ranks
from glm_kvplan.engines.sglang.sizing.host_fit import bytes_by_host, ranks_by_host
from glm_kvplan.engines.sglang.sizing.host_sizes import HostPlan, host_pools, ranks_per_host, stage_plans
from glm_kvplan.errors import RefusedError
from glm_kvplan.model.loader import bundled_geometry
from glm_kvplan.units import GIB

GEOMETRY = bundled_geometry()
RECORD_FILE = DATA / "hicache.jsonl.gz"
with gzip.open(RECORD_FILE, "rt", encoding="utf-8") as lines:
    RECORDS: list[dict[str, Any]] = [json.loads(line) for line in lines]
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
        Rank(GEOMETRY, deployment_of(record), profile_of(record), range(*given["stage_layers"])),
        PoolSizes(given["tokens"], given["state_slots"], given["max_running_requests"]),
        host_available_bytes=given["host_available_bytes"],
        local_ranks=given["world_size"],
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


H200_TP8_DP8 = Deployment(tp_size=8, attn_dp_size=8, kv_layout="bf16", enable_hierarchical_cache=True)
"""ENGINE_MODEL's example A: no speculation, ratio 2."""
B200_TP4_MTP = Deployment(
    tp_size=4,
    linear_attn_tp_size=4,
    kv_layout="fp8_raw",
    speculative_algorithm="EAGLE",
    speculative_num_draft_tokens=4,
    max_draft_tokens=4,
    enable_hierarchical_cache=True,
)
B200_SIZES = PoolSizes(8_563_520, 706, 48)


@pytest.mark.parametrize(
    ("release", "page", "sizes", "pools", "per_rank", "per_node"),
    [
        (
            "0.5.21",
            64,
            PoolSizes(2_076_032, 159, 31),
            {"kv": (4_152_128, 46_769_569_792), "mamba": (319, 47_090_728_960)},
            "93.86",
            "750.9",
        ),
        (
            "0.5.22",
            256,
            PoolSizes(2_200_320, 154, 30),
            {
                "kv": (4_400_896, 49_571_692_544),
                "mamba": (309, 45_614_530_560),
                "indexer": (4_400_896, 1_597_618_176),
            },
            "96.78",
            "774.3",
        ),
    ],
)
def test_example_a(
    release: str,
    page: int,
    sizes: PoolSizes,
    pools: dict[str, tuple[int, int]],
    per_rank: str,
    per_node: str,
) -> None:
    deployment = replace(H200_TP8_DP8, page_size=page)
    plans = stage_plans(ranks(one_rank(deployment, load_profile(release))), sizes)
    assert {pool.name: (pool.units, pool.nbytes) for pool in plans[0].pools} == pools
    assert f"{plans[0].nbytes / 1e9:.2f}" == per_rank
    assert [f"{nbytes / 1e9:.1f}" for nbytes in bytes_by_host(plans, deployment)] == [per_node]


def test_staging_buffers() -> None:
    """25 MB at page 64, 100 MB and the index's at page 256; none where pages are copied directly."""
    plan = host_pools(one_rank(B200_TP4_MTP, load_profile("0.5.21")), B200_SIZES)
    assert [pool.staging_bytes for pool in plan.pools] == [64 * 64 * 12 * 512, 0] == [25_165_824, 0]
    wide = replace(B200_TP4_MTP, page_size=256)
    plan = host_pools(one_rank(wide, load_profile("0.5.22")), B200_SIZES)
    assert [pool.staging_bytes for pool in plan.pools] == [100_663_296, 0, 64 * 12 * 8448]
    direct = replace(wide, hicache_mem_layout="page_first_direct", hicache_io_backend="direct")
    assert host_pools(one_rank(direct, load_profile("0.5.22")), B200_SIZES).staging_bytes == 0


@pytest.mark.parametrize("release", releases())
def test_a_pool_of_pages_needs_as_many_as_it_has_layers(release: str) -> None:
    """The engine takes kv_buffer[layer] of a buffer whose first dimension is pages (pool_host/mla.py:268-275)."""
    profile = load_profile(release)
    deployment = replace(
        B200_TP4_MTP, page_size=profile.page_size * 4, hicache_mem_layout="page_first_direct", hicache_ratio=1.0
    )
    rank = one_rank(deployment, profile)
    layers = host_pools(rank, B200_SIZES).pools[0].layers
    enough = PoolSizes((layers - 1) * deployment.page_size, 16, 4)
    assert host_pools(rank, enough).pools[0].pages == layers
    with pytest.raises(RefusedError, match="fewer pages than layers"):
        host_pools(rank, enough._replace(tokens=(layers - 2) * deployment.page_size))
    first = one_rank(replace(deployment, hicache_mem_layout="page_first"), profile)
    host_pools(first, enough._replace(tokens=deployment.page_size))


def test_kv_split_starts_in_one_release() -> None:
    """Index keys then lie beside the latent rows, 128 elements a token and layer (pool_host/mla.py at 0.5.21)."""
    split = replace(B200_TP4_MTP, hicache_mem_layout="page_first_kv_split")
    plan = host_pools(one_rank(split, load_profile("0.5.21")), B200_SIZES)
    assert (plan.pools[0].row_bytes, plan.staging_bytes) == (512 + 128, 0)
    for release in ("0.5.20", "0.5.22", "0.5.23"):
        with pytest.raises(RefusedError, match="page_first"):
            host_pools(one_rank(split, load_profile(release)), B200_SIZES)


def test_stages_agree_on_an_explicit_size() -> None:
    """The two stages of the `pp` records alone hold 8,670,848 and 7,614,464 tokens; together both hold the smaller."""
    record = next(r for r in RECORDS if r["kind"] == "pp" and r["inputs"]["hicache_size"] and "0.5.21" in r["engine"])
    deployment = replace(deployment_of(record), hicache_size=32)
    sizes = PoolSizes(2_076_160, 159, 31)
    plans = stage_plans(ranks(one_rank(deployment, load_profile("0.5.21"))), sizes)
    assert [plan.pools[0].units for plan in plans] == [7_614_464, 7_614_464]
    assert [plan.pools[1].units for plan in plans] == [467, 467]


def test_hosts_of_a_pipeline() -> None:
    """Two hosts, two stages: each host holds one stage; on one host with two replicas every stage counts twice."""
    two_hosts = Deployment(tp_size=4, pp_size=2, nnodes=2)
    assert ranks_by_host(two_hosts) == ((4, 0), (0, 4))
    assert ranks_by_host(Deployment(tp_size=2, pp_size=2, replicas=2)) == ((4, 4),)
    assert ranks_per_host(two_hosts) == 4


def test_automatic_pools_are_booked_one_after_another() -> None:
    """Ratio 0.5 of 2 slots and 31,232 tokens: KV and 2 slots each fit the budget, not both.

    host_memory_budget_scope of mem_cache/pool_host/base.py:57-64, 94-99 at 0.5.21. An explicit ratio checks each alone.
    """
    sizes, profile = PoolSizes(31_232, 2, 1), load_profile("0.5.21")
    slot, kv = 147_619_840, (31_232 + 64) * 512 * 11
    device = 3 * slot + kv + 489 * 8448 * 11
    budget = int(0.5001 * device / 0.95)
    state, half_kv = 2 * slot, (31_232 // 2 + 64) * 512 * 11
    assert max(state, half_kv) < budget < state + half_kv
    automatic = Deployment(kv_layout="fp8_raw", enable_hierarchical_cache=True, hicache_host_memory_fraction=0.8)
    available = 10 * GIB + -(-budget * 5 // 4)
    with pytest.raises(RefusedError, match="mamba pool"):
        host_pools(one_rank(automatic, profile), sizes, host_available_bytes=available)
    explicit = replace(automatic, hicache_ratio=0.5, hicache_host_memory_fraction=None)
    plan = host_pools(one_rank(explicit, profile), sizes, host_available_bytes=10 * GIB + budget)
    assert [pool.nbytes for pool in plan.pools] == [half_kv, state]
