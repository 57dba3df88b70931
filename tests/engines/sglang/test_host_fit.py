"""Host memory of a whole machine: fit, coverage, hazards, the map of objects, PD decode's overrun."""

from dataclasses import replace
from typing import Any

import pytest
from hand_counted import one_rank
from hypothesis import given, settings
from hypothesis import strategies as st
from test_host import B200_SIZES, B200_TP4_MTP

from glm_kvplan.engines.sglang.components import locations, tensor_specs
from glm_kvplan.engines.sglang.components.decode_overrun import decode_overrun
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.engines.sglang.profile import load_profile, releases
from glm_kvplan.engines.sglang.rank import ranks
from glm_kvplan.engines.sglang.sizing.host_coverage import balance, coverage
from glm_kvplan.engines.sglang.sizing.host_fit import host_fit
from glm_kvplan.engines.sglang.sizing.host_hazards import host_hazards
from glm_kvplan.engines.sglang.sizing.host_sizes import host_pools
from glm_kvplan.errors import InputError
from glm_kvplan.model.loader import bundled_geometry
from glm_kvplan.units import GIB

GEOMETRY = bundled_geometry()


def dynamo() -> Deployment:
    """cases/dynamo-b200-agg-flags: 100 GB a rank, four ranks, in a pod of 256 GiB."""
    return replace(B200_TP4_MTP, hicache_size=100, enable_linear_replayssm_spec=True, max_running_requests=64)


def test_a_size_per_rank_against_a_pod() -> None:
    profile = load_profile("0.5.21")
    fit = host_fit(ranks(one_rank(dynamo(), profile)), B200_SIZES, host_bytes=2048 * GIB, pod_bytes=256 * GIB)
    assert not fit.fits
    assert fit.spare_bytes == 246 * GIB - fit.host_bytes[0] < -135 * 10**9
    # The engine's own check reads the pod and each pool of some 50 GB fits (256 - 10) GiB / 4 = 66 GB: it would start.
    assert fit.refused is None
    # 246 GiB for four ranks are 66.04 GB a rank.
    assert fit.largest_size == 66
    kinds = [hazard.kind for hazard in host_hazards(one_rank(dynamo(), profile), fit.plans, pod_bytes=256 * GIB)]
    assert kinds == ["index_not_backed_up", "size_is_per_rank", "pools_checked_alone"]


@given(
    release=st.sampled_from(releases()),
    gib=st.integers(12, 4096),
    drafts=st.booleans(),
    ranks=st.sampled_from((1, 2, 4, 8)),
)
@settings(max_examples=60, deadline=None)
def test_largest_is_the_last_that_fits(release: str, gib: int, drafts: bool, ranks: int) -> None:
    profile = load_profile(release)
    base = replace(
        B200_TP4_MTP, tp_size=ranks, linear_attn_tp_size=ranks, page_size=256 if profile.host_index_pool else 64
    )
    if not drafts:
        base = replace(base, speculative_algorithm=None, max_draft_tokens=None)
    sizes = PoolSizes(256 * 4000, 100, 16)

    def fits(**changes: Any) -> bool:
        return host_fit((one_rank(replace(base, **changes), profile),), sizes, host_bytes=gib * GIB).fits

    fit = host_fit((one_rank(base, profile),), sizes, host_bytes=gib * GIB)
    step = 0 if fit.largest_ratio is None else round(fit.largest_ratio * 1000)
    assert step == 0 or fits(hicache_ratio=step / 1000)
    assert not fits(hicache_ratio=(step + 1) / 1000)
    size = fit.largest_size or 0
    assert size == 0 or fits(hicache_size=size)
    assert not fits(hicache_size=size + 1)


def test_coverage_of_the_state_tier() -> None:
    """1,413 states for 267,611 pages: at 155 pages a prefix the KV tier holds 1,726 prefixes, 82 % of them usable."""
    plan = host_pools(one_rank(B200_TP4_MTP, load_profile("0.5.21")), B200_SIZES)
    short = coverage(plan, 155 * 64)
    assert (short.kv_prefixes, short.state_prefixes, short.usable_prefixes) == (1726, 1413, 1413)
    assert round(short.fraction, 2) == 0.82
    assert short.stranded_kv_bytes == (1726 - 1413) * 155 * 64 * 12 * 512
    assert short.stranded_state_bytes == 0
    hazard = host_hazards(one_rank(B200_TP4_MTP, load_profile("0.5.21")), (plan,), coverage=short)[1]
    assert hazard.kind == "state_tier_short" and "82%" in hazard.message
    long = coverage(plan, 200_000)
    assert long.fraction == 1 and long.stranded_kv_bytes == 0
    assert long.stranded_state_bytes == (1413 - 267_611 // 3125) * 35 * 1_085_440
    assert coverage(plan, 10**9).fraction == 0
    with pytest.raises(InputError):
        coverage(plan, 0)


@pytest.mark.parametrize("changes", [{}, {"hicache_size": 200}])
@pytest.mark.parametrize("prefix", [2_048, 9_920, 60_032])
@pytest.mark.parametrize("release", ["0.5.21", "0.5.23"])
def test_balance_levels_the_tiers(changes: dict[str, Any], prefix: int, release: str) -> None:
    """With the suggested slots, and the tokens the device then has left, both tiers hold the same prefixes to 1 %."""
    profile = load_profile(release)
    deployment = replace(B200_TP4_MTP, page_size=256 if profile.host_index_pool else 64, **changes)
    plan = host_pools(one_rank(deployment, profile), B200_SIZES)
    found = balance(plan, deployment, prefix)
    slot = plan.pools[1].bytes_per_unit
    token = (plan.devices.kv_bytes + plan.devices.draft_bytes) // (B200_SIZES.tokens + deployment.page_size)
    tokens = B200_SIZES.tokens + (B200_SIZES.state_slots - found.state_slots) * slot // token
    moved = B200_SIZES._replace(tokens=tokens // 256 * 256, state_slots=found.state_slots)
    level = coverage(host_pools(one_rank(deployment, profile), moved), prefix)
    assert abs(level.kv_prefixes - level.state_prefixes) <= max(2, level.kv_prefixes // 100)
    assert found.max_mamba_cache_size == found.state_slots
    assert found.prefixes > coverage(plan, prefix).usable_prefixes
    total = plan.nbytes if release == "0.5.21" else sum(pool.requested_bytes for pool in plan.pools)
    assert 0 <= total - found.kv_bytes - found.state_bytes < -(-prefix // 256) * 256 * 12 * 545 + slot


def test_decode_overrun() -> None:
    """31 requests, K = 31 and the default 62 extra: three times the slots, and 62 more rows of everything."""
    deployment = replace(
        B200_TP4_MTP,
        disaggregation_mode="decode",
        disaggregation_decode_extra_slots=62,
        disable_radix_cache=True,
        mamba_radix_cache_strategy="auto",
        enable_hierarchical_cache=False,
    )
    overrun = decode_overrun(one_rank(deployment, load_profile("0.5.21")), PoolSizes(2_076_160, 31, 31))
    assert overrun is not None
    assert (overrun.slots, overrun.budgeted_slots, overrun.slot_factor) == (93, 31, 3.0)
    assert (overrun.prealloc_requests, overrun.request_rows) == (62, 94)
    parts = dict(overrun.parts)
    assert parts["temporal_state"] == 35 * 62 * 1_048_576
    assert parts["conv_state"] == 35 * 62 * 36_864
    assert parts["intermediate_ssm"] == 35 * 62 * 4 * 1_048_576
    assert parts["intermediate_conv_window"] == 35 * 62 * 4 * 36_864
    assert parts["req_to_token"] == 62 * (1_048_576 + deployment.request_table_extra) * 4
    assert parts["compress_tail_k"] == 11 * 62 * 8 * 128 * 2
    assert overrun.nbytes == sum(parts.values())
    plain = replace(deployment, disaggregation_mode="prefill", disaggregation_decode_extra_slots=0)
    assert decode_overrun(one_rank(plain, load_profile("0.5.21")), PoolSizes(2_076_160, 31, 31)) is None


def test_scales_have_no_host_copy_before_0_5_22() -> None:
    scaled = replace(B200_TP4_MTP, kv_layout="fp8_scaled")
    old = host_pools(one_rank(scaled, load_profile("0.5.21")), B200_SIZES)
    hazard = host_hazards(one_rank(scaled, load_profile("0.5.21")), (old,))[0]
    assert hazard.kind == "scales_lost" and "528 B" in hazard.message and "512 B" in hazard.message
    assert hazard.nbytes == old.pools[0].units * 12 * 16
    new = replace(scaled, page_size=256)
    plan = host_pools(one_rank(new, load_profile("0.5.22")), B200_SIZES)
    assert not host_hazards(one_rank(new, load_profile("0.5.22")), (plan,))
    assert plan.pools[0].row_bytes == 528


@pytest.mark.parametrize(
    ("release", "copies"),
    [
        ("0.5.20", {"latent_kv": "KV", "kda_state": "MAMBA", "draft_kv": "KV"}),
        ("0.5.21", {"latent_kv": "KV", "kda_state": "MAMBA", "draft_kv": "KV"}),
        (
            "0.5.22",
            {
                "latent_kv": "KV",
                "indexer": "INDEXER",
                "kda_state": "MAMBA",
                "draft_kv": "KV",
                "draft_indexer": "INDEXER",
            },
        ),
    ],
)
def test_where_everything_lies(release: str, copies: dict[str, str]) -> None:
    """The article's map: DRAM has KV and state, from 0.5.22 the index too; tails and tables never."""
    profile = load_profile(release)
    found = locations(one_rank(B200_TP4_MTP, profile))
    assert {place.name: place.host_pool for place in found if place.host_pool} == copies
    tree = {place.name: place.tree for place in found}
    assert tree["latent_kv"] == tree["indexer"] == "FULL" and tree["kda_state"] == "MAMBA"
    assert tree["compress_tail"] is tree["request_table"] is tree["verify_snapshot"] is None
    bare, flat = (
        locations(one_rank(replace(B200_TP4_MTP, **changes), profile))
        for changes in ({"enable_hierarchical_cache": False}, {"disable_radix_cache": True})
    )
    assert not any(place.host_pool for place in bare)
    assert not any(place.tree for place in flat)


@pytest.mark.parametrize("changes", [{}, {"speculative_algorithm": None}, {"enable_linear_replayssm_spec": True}])
def test_the_map_names_every_large_tensor(changes: dict[str, Any]) -> None:
    deployment, profile = replace(B200_TP4_MTP, **changes), load_profile("0.5.21")
    named = [name for place in locations(one_rank(deployment, profile)) for name in place.tensors]
    assert len(named) == len(set(named))
    allocated = {spec.name for spec in tensor_specs(one_rank(deployment, profile), B200_SIZES) if spec.nbytes > 1 << 16}
    assert allocated - set(named) <= {"token_allocator.free_pages"}
