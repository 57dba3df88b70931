"""The solver against every record of the engine's own sizing, and the worked examples."""

import gzip
import json
from dataclasses import replace
from typing import Any

import pytest
from hand_counted import one_rank
from hypothesis import given
from hypothesis import strategies as st
from paths import DATA

from glm_kvplan.engines.sglang.components import tensor_specs
from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.engines.sglang.profile import EngineProfile, load_profile
from glm_kvplan.engines.sglang.rank import Rank
from glm_kvplan.engines.sglang.sizing.binding_limits import limits
from glm_kvplan.engines.sglang.sizing.failures import SizingError, refusal
from glm_kvplan.engines.sglang.sizing.rank_costs import costs
from glm_kvplan.engines.sglang.sizing.solver import Solution, attempt, attempt_stages, size
from glm_kvplan.errors import InputError, KvplanError
from glm_kvplan.model.loader import bundled_geometry
from glm_kvplan.units import GIB, MIB

GEOMETRY = bundled_geometry()
RECORDS = [json.loads(line) for line in gzip.decompress((DATA / "sizing.jsonl.gz").read_bytes()).splitlines()]
RELEASES = ("0.5.20", "0.5.21", "0.5.22", "0.5.23")
KINDS = {
    "weights_leave_no_kv_memory": "no_token_memory",
    "state_cache_serves_no_request": "no_requests",
}
FEATURE_CACHE_MIB = {"cuda_ipc": 1024}


def page_size(profile: EngineProfile) -> int:
    return profile.page_size * (GEOMETRY.index_kpool if profile.page_size_times_index_kpool else 1)


def deployment_of(inputs: dict[str, Any], profile: EngineProfile) -> Deployment:
    drafts = inputs["draft_tokens"]
    return Deployment(
        tp_size=inputs["tp_size"],
        pp_size=inputs["pp_size"],
        attn_dp_size=inputs["attn_dp_size"],
        linear_attn_tp_size=inputs["tp_size"] // inputs["attn_dp_size"],
        page_size=page_size(profile),
        kv_cache_dtype="bfloat16" if inputs["kv_layout"] == "bf16" else "fp8_e4m3",
        kv_layout=inputs["kv_layout"],
        max_total_tokens=inputs["max_total_tokens"],
        context_length=inputs["context_len"] or GEOMETRY.max_position_embeddings,
        disable_radix_cache=inputs["disable_radix_cache"],
        mamba_radix_cache_strategy=inputs["strategy"],
        disable_overlap_schedule=not inputs["overlap"],
        mamba_ssm_dtype=inputs["mamba_ssm_dtype"] or "float32",
        mamba_full_memory_ratio=inputs["mamba_full_memory_ratio"],
        max_mamba_cache_size=inputs["max_mamba_cache_size"],
        skip_decode_lock=inputs["skip_decode_lock"],
        enable_linear_replayssm_spec=inputs["replayssm_spec"],
        max_running_requests=inputs["max_running_requests"],
        speculative_algorithm=None if drafts is None else "EAGLE",
        speculative_num_steps=None if drafts is None else drafts - 1,
        speculative_eagle_topk=None if drafts is None else 1,
        speculative_num_draft_tokens=drafts,
        max_draft_tokens=drafts,
        mem_fraction_static=inputs["mem_fraction_static"],
        multimodal=inputs["multimodal"],
        mm_reserve_mib=100 + FEATURE_CACHE_MIB.get(inputs["mm_feature_transport"], 0),
        disaggregation_mode=inputs["disaggregation_mode"],
    )


def solved(record: dict[str, Any]) -> Solution:
    profile = load_profile(record["engine"].removeprefix("sglang-"))
    inputs = record["inputs"]
    rank = Rank(GEOMETRY, deployment_of(inputs, profile), profile, range(*record["outputs"]["layers"]))
    return size(costs(rank), inputs["pre_gib"], inputs["avail_gib"])


def integers(record: dict[str, Any]) -> dict[str, Any]:
    solution = solved(record)
    profile = load_profile(record["engine"].removeprefix("sglang-"))
    deployment = deployment_of(record["inputs"], profile)
    costs = solution.costs
    got: dict[str, Any] = {
        "mm_reservation_gib": costs.reserve_gib,
        "page_size": costs.page_size,
        "mamba_ratio": costs.slots_per_request,
        "mamba_cache_per_req": len(GEOMETRY.linear_attention_layers) * costs.slot_bytes // max_stage_layers(deployment),
        "cell_size": costs.cell_bytes,
        "cell_target_total": costs.target_bytes,
        "cell_target_indexer": costs.index_bytes,
    }
    if record["inputs"]["draft_tokens"] is not None:
        got["cell_draft_added"] = costs.draft_bytes
    if "kv_budget_bytes" in record["outputs"]:
        got["kv_budget_bytes"] = solution.token_budget_bytes
    if "refused" in record["outputs"]:
        got["refused"] = solution.failure
    else:
        got["max_mamba_cache_size"] = solution.state_slots
        got["max_total_num_tokens"] = solution.tokens
        got["max_running_requests"] = solution.running_requests
        got["req_to_token_extra_context_len"] = deployment.request_table_extra
    return got


def max_stage_layers(deployment: Deployment) -> int:
    """KDA layers of the largest stage, with and without a split in two."""
    return {1: 34, 2: 17}[deployment.pp_size]


@pytest.mark.parametrize("release", RELEASES)
def test_every_integer_of_the_engine(release: str) -> None:
    records = [record for record in RECORDS if record["engine"] == f"sglang-{release}"]
    assert len(records) == 305
    for record in records:
        outputs = dict(record["outputs"])
        if "refused" in outputs:
            outputs["refused"] = KINDS[outputs["refused"]]
        got = integers(record)
        assert got == {name: outputs[name] for name in got}, (record["case"], record["inputs"])
    names = {name for record in RECORDS for name, value in record["outputs"].items() if isinstance(value, int)}
    unchecked = names - {name for record in RECORDS[:200] for name in integers(record)}
    # elements of a row, layers of a pool and allocated bytes: pools, tested with the tensors
    assert unchecked == {
        "kv_cache_dim",
        "mamba_cache_params_layers",
        "mamba_layer_ids_allocated",
        "alloc_device_total_bytes",
    }


@pytest.mark.parametrize("release", RELEASES)
def test_every_tensor_of_the_solved_sizes(release: str) -> None:
    """Sizes solved here, then allocated by the pools, against the bytes the engine allocated."""
    checked = 0
    for record in RECORDS:
        if record["engine"] != f"sglang-{release}" or "alloc_bytes" not in record["outputs"]:
            continue
        profile = load_profile(release)
        deployment = deployment_of(record["inputs"], profile)
        stage = range(*record["outputs"]["layers"])
        specs = tensor_specs(Rank(GEOMETRY, deployment, profile, stage), solved(record).sizes)
        expected = {name.partition("(")[0]: size for name, size in record["outputs"]["alloc_bytes"].items()}
        got: dict[str, int] = {}
        for spec in specs:
            got[spec.name] = got.get(spec.name, 0) + spec.nbytes
        assert got == expected, (record["case"], record["inputs"])
        checked += 1
    assert checked > 250


# Two examples worked by hand from the engine's source: (fraction, slots, token budget, tokens, requests).
EXAMPLE_A = {
    "0.5.21": (0.769 * 0.95, 159, 26_399_497_990, 2_076_032, 31),
    "0.5.22": (0.758 * 0.95, 154, 25_583_543_805, 2_200_320, 30),
    "0.5.23": (0.758 * 0.95, 154, 25_583_543_805, 2_200_320, 30),
}
EXAMPLE_B = {
    "0.5.21": (0.855 * 0.95, 706, 66_179_113_484, 8_563_520, 48),
    "0.5.22": (0.846 * 0.95, 695, None, 9_932_544, 48),
    "0.5.23": (0.846 * 0.95, 695, None, 9_932_544, 48),
}


def example_a(profile: EngineProfile, fraction: float) -> Deployment:
    """H200, TP8 with attention DP 8, bf16 rows, no speculation."""
    return Deployment(tp_size=8, attn_dp_size=8, page_size=page_size(profile), mem_fraction_static=fraction)


def example_b(profile: EngineProfile, fraction: float) -> Deployment:
    """B200, TP4, raw FP8 rows, MTP with 4 draft tokens."""
    return Deployment(
        tp_size=4,
        linear_attn_tp_size=4,
        page_size=page_size(profile),
        kv_cache_dtype="fp8_e4m3",
        kv_layout="fp8_raw",
        max_running_requests=48,
        speculative_algorithm="EAGLE",
        speculative_num_steps=3,
        speculative_eagle_topk=1,
        speculative_num_draft_tokens=4,
        max_draft_tokens=4,
        mem_fraction_static=fraction,
    )


def solve(*of: Any) -> Solution:
    """The solution of a start that the engine does not refuse."""
    solution = attempt(*of)
    if solution.failure is not None:
        raise refusal(solution)
    return solution


def state_bytes(solution: Solution) -> int:
    return (solution.costs.slot_bytes + solution.costs.ring_bytes) * (solution.state_slots + 1)


@pytest.mark.parametrize("release", EXAMPLE_A)
def test_worked_example_a(release: str) -> None:
    fraction, slots, budget, tokens, requests = EXAMPLE_A[release]
    profile = load_profile(release)
    solution = solve(one_rank(example_a(profile, fraction), profile), 138.5, 84.0)
    assert solution.token_budget_bytes == budget
    assert solution.sizes == (tokens, slots, requests)
    bound, following = limits(solution).requests[:2]
    assert (bound.name, bound.value) == ("state slots", requests)
    assert (following.name, following.value) == ("engine's clamp", 2048)
    if release == "0.5.21":
        assert solution.slack_gib == pytest.approx(37.318825, abs=1e-6)
        assert solution.costs.reserve_gib == 0.09765625
        assert state_bytes(solution) == 23_619_174_400


@pytest.mark.parametrize("release", EXAMPLE_B)
def test_worked_example_b(release: str) -> None:
    fraction, slots, budget, tokens, requests = EXAMPLE_B[release]
    profile = load_profile(release)
    deployment = example_b(profile, fraction)
    solution = solve(one_rank(deployment, profile), 177.0, 126.0)
    assert solution.sizes == (tokens, slots, requests)
    assert solution.costs.slot_bytes == 36_904_960
    assert solution.snapshot_bytes == 7_233_372_160
    if budget is not None:
        assert solution.token_budget_bytes == budget
        assert state_bytes(solution) == 26_091_806_720
    names = [limit.name for limit in limits(solution).requests]
    assert names == ["max_running_requests", "state slots", "token pool"]
    assert limits(solution).requests[1].value == slots // 5
    assert limits(solution).tokens_per_slot == 36_904_960 / {"0.5.21": 7728}.get(release, 6540)


def test_pipeline_stages_share_the_least_pool() -> None:
    """The stage [22, 45) has the dearer token, so the oracle's values of that rank are every rank's."""
    checked = 0
    for record in RECORDS:
        if record["inputs"]["pp_rank"] != 1 or "refused" in record["outputs"]:
            continue
        profile = load_profile(record["engine"].removeprefix("sglang-"))
        inputs, outputs = record["inputs"], record["outputs"]
        deployment = deployment_of(inputs, profile)
        stages = attempt_stages(one_rank(deployment, profile), inputs["pre_gib"], inputs["avail_gib"])
        expected = (
            outputs["max_total_num_tokens"],
            outputs["max_mamba_cache_size"],
            outputs["max_running_requests"],
        )
        assert [solution.sizes for solution in stages] == [expected, expected]
        whole = attempt(one_rank(deployment, profile), inputs["pre_gib"], inputs["avail_gib"])
        assert whole.sizes == expected
        checked += 1
    assert checked > 50


def with_memory(available: float, **changes: Any) -> Solution:
    profile = load_profile("0.5.21")
    deployment = replace(example_b(profile, 0.8), **changes)
    return solve(one_rank(deployment, profile), 177.0, available)


@pytest.mark.parametrize(
    ("kind", "available", "changes"),
    [
        ("no_state_slots", 20.0, {}),
        ("no_state_slots", 126.0, {"max_mamba_cache_size": 0}),
        ("no_state_slots", 126.0, {"max_running_requests": 0, "disable_radix_cache": True}),
        ("no_token_memory", 126.0, {"max_mamba_cache_size": 3000}),
        ("no_tokens", 126.0, {"max_total_tokens": 63}),
        ("no_requests", 126.0, {"max_mamba_cache_size": 4}),
        ("no_requests", 126.0, {"max_running_requests": 3, "attn_dp_size": 4}),
        (
            "lazy_needs_overlap",
            126.0,
            {"mamba_radix_cache_strategy": "extra_buffer_lazy", "disable_overlap_schedule": True},
        ),
    ],
)
def test_each_refusal_says_what_is_missing(kind: str, available: float, changes: dict[str, Any]) -> None:
    with pytest.raises(SizingError) as caught:
        with_memory(available, **changes)
    assert caught.value.kind == kind
    assert caught.value.source
    assert "\n" not in str(caught.value)


def test_the_missing_bytes_are_the_missing_bytes() -> None:
    """That much more free memory leaves no debt; a MiB less still does."""
    with pytest.raises(SizingError) as caught:
        with_memory(126.0, max_mamba_cache_size=3000)
    missing = caught.value.missing_bytes
    page = 64 * 7728
    least = with_memory(126.0 + (missing + page + 1) / GIB, max_mamba_cache_size=3000)
    assert (least.tokens, least.running_requests) == (64, 32)  # two tokens a request at the least
    assert limits(least).requests[0].name == "token pool"
    with pytest.raises(SizingError):
        with_memory(126.0 + (missing - MIB) / GIB, max_mamba_cache_size=3000)


def test_the_binding_token_limit_and_the_next() -> None:
    capped, free = limits(with_memory(126.0, max_total_tokens=500_000)), limits(with_memory(126.0))
    assert capped.tokens[0][:2] == ("max_total_tokens", 499_968)
    assert capped.tokens[1] == free.tokens[0]
    assert free.tokens[0].name == "memory" and free.slots.name == "mamba_full_memory_ratio"


@given(st.floats(1, 300), st.floats(0, 300), st.floats(0.3, 1), st.floats(0.01, 10))
def test_floats_in_the_models_order(pre: float, available: float, fraction: float, ratio: float) -> None:
    """The engine's operations one by one, in its order: another order differs in the last bits of some inputs."""
    profile = load_profile("0.5.21")
    deployment = replace(example_b(profile, fraction), mamba_full_memory_ratio=ratio)
    solution = attempt(one_rank(deployment, profile), pre, available)
    slack = pre * (1 - fraction)
    assert solution.slack_gib == slack
    rest = available - slack - 100 / 1024
    assert solution.budget_gib == rest
    assert solution.state_budget_bytes == rest * ratio / (1 + ratio) * (1 << 30)
    rest = rest - solution.snapshot_bytes / (1 << 30)
    if solution.failure != "no_state_slots":
        assert solution.token_gib == rest - state_bytes(solution) / (1 << 30)


def test_the_first_state_slot_costs_what_the_refusal_says() -> None:
    with pytest.raises(SizingError) as caught:
        with_memory(36.0, mamba_full_memory_ratio=0.01)
    error = caught.value
    assert error.kind == "no_state_slots"
    assert error.solution is not None
    share = error.solution.state_budget_bytes / (error.solution.budget_gib * GIB)
    enough = 36.0 + error.missing_bytes / share / GIB
    with pytest.raises(SizingError) as caught:
        with_memory(enough + 0.01, mamba_full_memory_ratio=0.01)
    assert caught.value.kind == "no_requests"  # one slot now, and a request takes five
    with pytest.raises(SizingError) as caught:
        with_memory(enough - 0.01, mamba_full_memory_ratio=0.01)
    assert caught.value.kind == "no_state_slots"


BOOTING = [
    record for record in RECORDS if "refused" not in record["outputs"] and record["inputs"]["max_mamba_cache_size"]
]


@given(st.sampled_from(BOOTING), st.floats(0, 200))
def test_more_memory_never_gives_fewer_tokens(record: dict[str, Any], more: float) -> None:
    inputs = dict(record["inputs"], max_total_tokens=None)
    profile = load_profile(record["engine"].removeprefix("sglang-"))
    deployment = deployment_of(inputs, profile)
    pre, available = inputs["pre_gib"], inputs["avail_gib"]
    before = solve(one_rank(deployment, profile), pre, available)
    after = solve(one_rank(deployment, profile), pre, available + more)
    assert after.tokens >= before.tokens
    assert after.state_slots == before.state_slots


ANY_COUNT = st.none() | st.integers(0, 2000) | st.integers(-(2**70), 2**70)


@given(
    st.floats(0, 300) | st.floats(),
    st.floats(0, 300) | st.floats(),
    st.floats(0.3, 1) | st.floats(),
    st.floats(0, 10) | st.floats(),
    ANY_COUNT,
    ANY_COUNT,
    ANY_COUNT,
    st.booleans(),
)
def test_absurd_numbers_are_refused_in_words(
    pre: float,
    available: float,
    fraction: float,
    ratio: float,
    requests: int | None,
    slots: int | None,
    tokens: int | None,
    radix_off: bool,
) -> None:
    profile = load_profile("0.5.23")
    deployment = replace(
        example_b(profile, fraction),
        mamba_full_memory_ratio=ratio,
        max_running_requests=requests,
        max_mamba_cache_size=slots,
        max_total_tokens=tokens,
        disable_radix_cache=radix_off,
    )
    try:
        solution = solve(one_rank(deployment, profile), pre, available)
    except KvplanError:
        return
    assert min(solution.sizes) > 0


@pytest.mark.parametrize("memory", [float("nan"), float("inf"), -1.0, 1e300])
def test_memory_that_is_no_memory(memory: float) -> None:
    profile = load_profile("0.5.21")
    for pre, available in ((memory, 80.0), (140.0, memory)):
        with pytest.raises(InputError):
            solve(one_rank(example_b(profile, 0.8), profile), pre, available)
