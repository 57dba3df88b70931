"""HiCache at its edges: floors, exact fits, uneven stages, balances dealt out by hand, and every hazard's bytes."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hand_counted import one_rank

from glm_kvplan.engines.sglang.components import tensor_specs
from glm_kvplan.engines.sglang.components.host_pools import HostPool, state_pool
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.engines.sglang.profile import load_profile
from glm_kvplan.engines.sglang.rank import Rank, ranks
from glm_kvplan.engines.sglang.sizing.host_coverage import Balance, balance, coverage
from glm_kvplan.engines.sglang.sizing.host_devices import DevicePools, device_pools
from glm_kvplan.engines.sglang.sizing.host_fit import HostFit, host_fit, ranks_by_host
from glm_kvplan.engines.sglang.sizing.host_given import host_given
from glm_kvplan.engines.sglang.sizing.host_hazards import Hazard, host_hazards
from glm_kvplan.engines.sglang.sizing.host_sizes import (
    HostPlan,
    automatic_ratio,
    claimable_bytes,
    first_over_budget,
    host_pools,
    plan_ratio,
    plan_size,
    sized_automatically,
    stage_plans,
)
from glm_kvplan.errors import InputError, RefusedError
from glm_kvplan.model.loader import bundled_geometry
from glm_kvplan.units import GIB, LARGEST_GIB

GEOMETRY = bundled_geometry()
PROFILE = load_profile("0.5.21")
PLAIN = Deployment(tp_size=4, linear_attn_tp_size=4, kv_layout="fp8_raw", enable_hierarchical_cache=True)
SIZES = PoolSizes(64_000, 100, 16)
DEVICES = device_pools(one_rank(PLAIN, PROFILE), SIZES)
ROW, SLOT = 11 * 512, 34 * (36_864 + 1_048_576)  # bytes of a token and of a slot, all layers


# -- what a rank may claim, and what it asks for -----------------------------------------------------------------------


def test_claims_are_whole_bytes_after_ten_gib() -> None:
    assert claimable_bytes(10 * GIB + 7, 2) == 3 and type(claimable_bytes(10 * GIB + 7, 2)) is int
    with pytest.raises(RefusedError, match="no host memory is left after the 10 GiB reserve"):
        automatic_ratio([DEVICES], 0)
    total = DEVICES.kv_bytes + DEVICES.state_bytes
    assert automatic_ratio([DEVICES], total) == pytest.approx(0.95)
    assert automatic_ratio([DEVICES], total * 100) == 2.0
    assert automatic_ratio([DEVICES], total * 100, 1.5) == 1.5


def test_a_ratio_is_the_engines_own_only_where_nothing_was_typed() -> None:
    untyped = replace(PLAIN, hicache_host_memory_fraction=0.8)
    assert sized_automatically(untyped, PROFILE)
    assert not sized_automatically(replace(untyped, hicache_size=1), PROFILE)
    assert not sized_automatically(PLAIN, PROFILE)
    assert not sized_automatically(untyped, load_profile("0.5.20"))
    assert plan_ratio(ranks(one_rank(PLAIN, PROFILE)), [DEVICES], 1.0)[0].sizing == "ratio"
    lower = host_pools(one_rank(replace(untyped, hicache_ratio=1.5), PROFILE), SIZES, host_available_bytes=4096 * GIB)
    assert (lower.sizing, lower.ratio) == ("automatic", 1.5)
    with pytest.raises(RefusedError, match="no host memory is left"):
        none = replace(untyped, hicache_host_memory_fraction=0.0)
        host_pools(one_rank(none, PROFILE), SIZES, host_available_bytes=4096 * GIB)


def test_pools_just_within_their_budget() -> None:
    plan = host_pools(one_rank(PLAIN, PROFILE), SIZES)
    kv, state = (pool.nbytes for pool in plan.pools)
    assert (kv, state) == ((128_000 + 64) * ROW, 201 * SLOT)
    assert plan.pool("kv") is plan.pools[0] and plan.pool("mamba") is plan.pools[1] and plan.pool("indexer") is None
    assert first_over_budget(plan) is None
    alone = plan._replace(budget_bytes=state)
    assert first_over_budget(alone) is None
    assert first_over_budget(alone._replace(budget_bytes=state - 1)) == (plan.pools[1], state - 1)
    together = plan._replace(sizing="automatic", budget_bytes=kv + state)
    assert first_over_budget(together) is None
    assert first_over_budget(together._replace(budget_bytes=kv + state - 1)) == (plan.pools[1], state - 1)
    host_pools(one_rank(PLAIN, PROFILE), SIZES, host_available_bytes=10 * GIB + 8 * state, local_ranks=8)
    with pytest.raises(RefusedError, match=f"mamba pool asks for {state:,} B .* may claim {state - 1:,} B"):
        host_pools(one_rank(PLAIN, PROFILE), SIZES, host_available_bytes=10 * GIB + 8 * state - 1, local_ranks=8)


def test_a_size_is_floored_to_whole_units() -> None:
    """GB are 10**9 bytes; counts are the exact floors of the two shares (here far beyond any machine)."""
    devices = DEVICES._replace(kv_bytes=1, state_bytes=1)
    plan = plan_size(ranks(one_rank(PLAIN, PROFILE)), [devices], 2 * 10**9)[0]
    tokens, slots = Fraction(10**18) // ROW, Fraction(10**18) // SLOT
    assert (plan.pools[0].pages, plan.pools[1].pages) == (tokens // 64 + 1, slots + 1)
    assert (plan.sizing, plan.ratio, plan.split) == ("size", None, (10.0**9, 10.0**9))
    for bare in (DEVICES._replace(kv_layers=0), DEVICES._replace(state_layers=0)):
        with pytest.raises(RefusedError, match="without KV or without state"):
            plan_size(ranks(one_rank(PLAIN, PROFILE)), [bare], 10)


def test_device_pools_of_all_layers_and_of_stages_without_a_kind() -> None:
    whole = device_pools(one_rank(PLAIN, PROFILE), SIZES)
    assert all(type(value) is int for value in whole)
    assert (whole.kv_layers, whole.index_layers, whole.state_layers) == (11, 11, 34)
    assert (whole.layer_state_bytes, whole.state_bytes) == (36_864 + 1_048_576, 101 * SLOT)
    assert whole.kv_bytes == (64_000 + 64) * ROW + 1001 * 11 * 8448
    assert whole.draft_bytes == whole.ring_bytes == 0
    assert device_pools(one_rank(PLAIN, PROFILE), PoolSizes(64, 1, 1)).ring_bytes == 0
    states = device_pools(Rank(GEOMETRY, PLAIN, PROFILE, range(3)), SIZES)
    assert (states.kv_layers, states.kv_bytes, states.state_bytes) == (0, 0, 3 * 101 * (36_864 + 1_048_576))
    rows = device_pools(Rank(GEOMETRY, PLAIN, PROFILE, range(3, 4)), SIZES)
    assert (rows.kv_layers, rows.state_layers, rows.layer_state_bytes, rows.state_bytes) == (1, 0, 0, 0)
    assert rows.kv_bytes == (64_000 + 64) * 512 + 1001 * 8448


def test_rings_of_one_slot() -> None:
    rings = replace(
        PLAIN, speculative_algorithm="EAGLE", speculative_num_draft_tokens=4, max_draft_tokens=4,
        enable_linear_replayssm_spec=True,
    )  # fmt: skip
    held = [spec for spec in tensor_specs(one_rank(rings, PROFILE), SIZES) if spec.name.startswith("replayssm_")]
    found = device_pools(one_rank(rings, PROFILE), SIZES)
    assert len(held) > 1 and found.ring_bytes * 101 == sum(spec.nbytes for spec in held)
    assert type(found.ring_bytes) is int


# -- a whole machine ---------------------------------------------------------------------------------------------------


def fit(deployment: Deployment, release: str = "0.5.21", **memory: int) -> HostFit:
    return host_fit(ranks(one_rank(deployment, load_profile(release))), SIZES, **memory)


def test_ranks_that_do_not_divide_go_to_the_last_host() -> None:
    assert ranks_by_host(Deployment(tp_size=3, nnodes=2)) == ((1,), (2,))
    assert ranks_by_host(Deployment(tp_size=5, nnodes=2, replicas=3)) == ((6,), (9,))


def test_memory_that_is_met_exactly() -> None:
    rank = (128_000 + 64) * ROW + 201 * SLOT
    exact = fit(PLAIN, host_bytes=10 * GIB + 4 * rank)
    assert (exact.fits, exact.spare_bytes, exact.host_bytes) == (True, 0, (4 * rank,))
    assert exact.largest_ratio == 2.0
    less = fit(PLAIN, host_bytes=10 * GIB + 4 * rank - 1)
    assert (less.fits, less.spare_bytes, less.largest_ratio) == (False, -1, 1.999)
    nothing = fit(PLAIN, host_bytes=10 * GIB + 1)
    assert (nothing.largest_ratio, nothing.largest_size) == (None, None) and not nothing.fits
    with pytest.raises(InputError, match="give what is available on one host"):
        fit(PLAIN)
    for layout in ("layer_first", "page_head", "page_first_kv_split"):
        with pytest.raises(RefusedError, match=f"--hicache-mem-layout {layout}: .* take page_first or"):
            fit(replace(PLAIN, hicache_mem_layout=layout), "0.5.22", host_bytes=GIB)


def test_the_engine_sees_a_container_or_not() -> None:
    """200 GB a rank in a pod of 256 GiB on a host of 2 TiB: only a release that reads the pod refuses."""
    large = replace(PLAIN, hicache_size=200)
    memory = {"host_bytes": 2048 * GIB, "pod_bytes": 256 * GIB}
    unseen, seen = fit(large, "0.5.20", **memory), fit(large, **memory)
    assert unseen.refused is None and not unseen.fits
    assert seen.refused is not None and "HiCache mamba pool asks for" in seen.refused
    assert unseen.host_bytes == seen.host_bytes == (4 * unseen.plans[0].nbytes,)
    assert unseen.available_bytes == seen.available_bytes == 246 * GIB
    alone = fit(large, "0.5.20", pod_bytes=256 * GIB)  # nothing is known of the host
    assert alone.refused is None and alone.largest_size == 246 * GIB // 4 // 10**9


@pytest.mark.parametrize("flag", ["hicache_ratio", "hicache_size"])
def test_uneven_stages_are_stopped_by_the_engines_check(flag: str) -> None:
    """39 layers and 6: on one host the engine grants both ranks half, although the second needs little."""
    uneven = Deployment(
        kv_layout="fp8_raw", pp_size=2, pipeline_partition=(39, 6), enable_hierarchical_cache=True,
        disable_overlap_schedule=True, linear_attn_tp_size=1,
    )  # fmt: skip
    memory = {"host_bytes": 40 * GIB}
    found = fit(uneven, **memory)
    largest, step = (found.largest_ratio, 0.001) if flag == "hicache_ratio" else (found.largest_size, 1)
    assert largest is not None
    at, above = (fit(replace(uneven, **{flag: value}), **memory) for value in (largest, largest + step))
    assert at.fits
    assert above.refused is not None and above.spare_bytes >= 0


def test_the_fullest_host_decides() -> None:
    apart = Deployment(
        kv_layout="fp8_raw", pp_size=2, nnodes=2, pipeline_partition=(39, 6), enable_hierarchical_cache=True,
        disable_overlap_schedule=True,
    )  # fmt: skip
    found = fit(apart, host_bytes=1024 * GIB)
    assert found.host_bytes[0] == found.plans[0].nbytes > found.plans[1].nbytes == found.host_bytes[1]
    assert found.spare_bytes == 1014 * GIB - found.host_bytes[0]


def test_a_stage_without_kv_has_no_size() -> None:
    states = replace(PLAIN, pp_size=2, pipeline_partition=(3, 42), disable_overlap_schedule=True)
    found = fit(states, host_bytes=4096 * GIB)
    assert found.largest_size is None and found.largest_ratio is not None


# -- tiers, dealt out by hand ------------------------------------------------------------------------------------------


def pool(name: str, page_size: int, pages: int, row: int) -> HostPool:
    return HostPool(name, page_size, pages, 1, row, pages * page_size * row, 0, state_pool(1, row, pages - 1).ledger)


def by_hand(sizing: str = "ratio", **devices: int) -> HostPlan:
    """6,400 tokens of 100 B and 11 states of 20,000 B; a device slot of 22,000 B with its rings."""
    held = DevicePools(
        tokens=64, state_slots=9, kv_layers=1, index_layers=1, state_layers=1, layer_state_bytes=20_000,
        kv_bytes=128 * 70, state_bytes=10 * 22_000 + 41_000, draft_bytes=128 * 30, ring_bytes=2000,
    )._replace(**devices)  # fmt: skip
    pools = (pool("kv", 64, 100, 100), pool("mamba", 1, 11, 20_000))
    return HostPlan(held, pools, sizing, None, None, None)  # type: ignore[arg-type]


def test_coverage_counts_whole_prefixes() -> None:
    found = coverage(by_hand(), 100)  # two pages
    assert (found.kv_prefixes, found.state_prefixes, found.usable_prefixes) == (50, 11, 11)
    assert (found.stranded_kv_bytes, found.stranded_state_bytes) == ((50 - 11) * 128 * 100, 0)
    assert found.fraction == 11 / 50
    assert coverage(by_hand(), 1).kv_prefixes == coverage(by_hand(), 64).kv_prefixes == 100
    long = coverage(by_hand(), 64 * 30)
    assert (long.kv_prefixes, long.fraction, long.stranded_state_bytes) == (3, 1.0, 8 * 20_000)
    with pytest.raises(InputError, match="mean prefix: 0 tokens; it must be at least 1"):
        coverage(by_hand(), 0)


def test_balance_by_ratio() -> None:
    """860,000 B hold 26 prefixes of 12,800 and a state; 232,800 device bytes hold 6 of 12,800 and 22,000."""
    found = balance(by_hand(), replace(PLAIN, attn_dp_size=4), 100)
    assert found.prefixes == (640_000 + 220_000) // (12_800 + 20_000) == 26
    assert (found.kv_bytes, found.state_bytes) == (26 * 12_800, 26 * 20_000)
    assert found.state_slots == (8960 + 3840 + 220_000) // (12_800 + 22_000) == 6
    assert found.max_mamba_cache_size == 24
    assert type(found.state_slots) is type(found.max_mamba_cache_size) is int
    assert found.state_share == 20_000 / 32_800 and Balance(0, 0, 0, 1, 1).state_share == 0.0
    one = by_hand(state_slots=0)  # 34,800 bytes: exactly one
    assert balance(one, PLAIN, 100).state_slots == 1
    assert balance(one, PLAIN, 10**6).state_slots == 1  # and never none


def test_balance_by_size() -> None:
    """KV and states of the device stand to each other as a prefix to a state, snapshots counted with the states."""
    found = balance(by_hand("size"), PLAIN, 100)
    prefix, state = 12_800 * 100, 20_000 * 70
    assert found.state_slots == (232_800 * state - 41_000 * prefix) // ((prefix + state) * 22_000) == 4
    assert type(found.state_slots) is int
    weightless = by_hand("size", kv_bytes=0, draft_bytes=0)
    assert balance(weightless, PLAIN, 100).state_slots == 1


# -- words of the command line, and hazards ----------------------------------------------------------------------------


def test_memory_in_words() -> None:
    assert host_given(PLAIN, host_gib=0.5, pod_gib=LARGEST_GIB) == (GIB // 2, int(LARGEST_GIB * GIB), None)
    assert host_given(Deployment(), host_gib=None, pod_gib=None) == (None, None, None)
    for value in (0.0, -1.0, LARGEST_GIB * 1.01, float("nan"), float("inf")):
        with pytest.raises(InputError, match=r"--pod-gib .*: give the GiB of one host, more than 0"):
            host_given(PLAIN, host_gib=None, pod_gib=value)
    with pytest.raises(InputError, match="--host-gib is checked against HiCache's host pools"):
        host_given(Deployment(), host_gib=1.0, pod_gib=None)


def hazards(
    deployment: Deployment, release: str = "0.5.21", prefix: int | None = None, **given: Any
) -> dict[str, Hazard]:
    profile = load_profile(release)
    plans = stage_plans(ranks(one_rank(deployment, profile)), SIZES)
    budget = given.pop("budget", None)
    plans = tuple(plan._replace(budget_bytes=budget) for plan in plans)
    covered = None if prefix is None else coverage(plans[0], prefix)
    found = host_hazards(one_rank(deployment, profile), plans, coverage=covered, **given)
    assert all(hazard.source and hazard.message for hazard in found)
    return {hazard.kind: hazard for hazard in found}


def test_hazards_of_contents() -> None:
    later = replace(PLAIN, page_size=256)
    assert hazards(later, "0.5.22") == {}
    index = hazards(PLAIN)
    assert list(index) == ["index_not_backed_up"] and "512 B a layer" in index["index_not_backed_up"].message
    assert index["index_not_backed_up"].nbytes is None
    assert "1024 B a layer" in hazards(replace(PLAIN, kv_layout="bf16"))["index_not_backed_up"].message
    scales = hazards(replace(PLAIN, kv_layout="fp8_scaled"))["scales_lost"]
    assert scales.nbytes == (128_000 + 64) * 11 * 16
    assert "528 B on the device and 512 B on the host" in scales.message
    split = hazards(replace(PLAIN, hicache_mem_layout="page_first_kv_split"))
    assert list(split) == ["no_transfer"] and split["no_transfer"].nbytes is None
    assert "page_first_kv_split" in split["no_transfer"].message
    assert list(hazards(replace(PLAIN, hicache_mem_layout="page_first_kv_split", kv_layout="fp8_scaled"))) == [
        "no_transfer"
    ]


def test_hazards_of_coverage() -> None:
    """2,001 pages and 201 states: 20 pages a prefix are 100 prefixes, 5 are 400."""
    assert "state_tier_short" not in hazards(PLAIN, prefix=20 * 64)
    short = hazards(PLAIN, prefix=5 * 64)["state_tier_short"]
    assert short.nbytes == (400 - 201) * 5 * 64 * ROW
    assert "covers 50% of the host KV tier at 320 tokens a prefix (201 states, 400 prefixes)" in short.message
    smaller = hazards(replace(PLAIN, hicache_ratio=0.5))["smaller_than_device"]
    assert smaller.nbytes == (32_000 + 64) * ROW
    assert "the host kv pool (32,064) is no larger than the device's (64,000)" in smaller.message
    just = hazards(replace(PLAIN, hicache_ratio=0.999))["smaller_than_device"]  # 63,936 and a page: as many
    assert "kv pool (64,000)" in just.message
    assert "smaller_than_device" not in hazards(replace(PLAIN, hicache_ratio=1.0))


def test_hazards_of_memory() -> None:
    assert "size_is_per_rank" not in hazards(replace(PLAIN, tp_size=1, hicache_size=10))
    two = replace(PLAIN, tp_size=2, hicache_size=1)
    size = hazards(two)["size_is_per_rank"]
    total = 2 * stage_plans(ranks(one_rank(two, PROFILE)), SIZES)[0].nbytes
    assert size.nbytes == total and f"1 is GB a rank, not a host: 2 ranks take {total / 10**9:.1f} GB" in size.message
    kv, state = (128_000 + 64) * ROW, 201 * SLOT
    assert "pools_checked_alone" not in hazards(PLAIN, budget=kv + state)
    alone = hazards(PLAIN, budget=kv + state - 1)["pools_checked_alone"]
    assert alone.nbytes == 4 * (kv + state)
    booked = host_pools(one_rank(PLAIN, PROFILE), SIZES)._replace(budget_bytes=kv + state - 1, sizing="automatic")
    kinds = [hazard.kind for hazard in host_hazards(one_rank(PLAIN, PROFILE), (booked,))]
    assert "pools_checked_alone" not in kinds  # by the automatic rule pools are booked one after another
    assert f"the largest asks for {state / 10**9:.1f} GB" in alone.message
    assert hazards(PLAIN, "0.5.20", pod_bytes=GIB)["pod_limit_unseen"].nbytes == 4 * (kv + state)
    assert "pod_limit_unseen" not in hazards(PLAIN, "0.5.20")
    assert "pod_limit_unseen" not in hazards(PLAIN, pod_bytes=GIB)
    replicas = hazards(replace(PLAIN, replicas=2))["replicas_unseen"]
    assert replicas.nbytes == 8 * (kv + state) and "each of the 2 replicas" in replicas.message
    assert "replicas_unseen" not in hazards(PLAIN)
