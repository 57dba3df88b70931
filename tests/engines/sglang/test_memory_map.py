"""Free memory, the map of one rank and what serving needs of the rest, against what operators printed."""

import json
import time
from dataclasses import replace
from typing import Any

import pytest
from hand_counted import one_rank
from hypothesis import given
from hypothesis import strategies as st
from paths import DATA

from glm_kvplan.engines.sglang.components import tensor_specs
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.engines.sglang.profile import load_profile, releases
from glm_kvplan.engines.sglang.sizing.headroom import headroom
from glm_kvplan.engines.sglang.sizing.memory_map import MemoryMap, memory_map
from glm_kvplan.engines.sglang.sizing.solver import attempt
from glm_kvplan.engines.sglang.sizing.transients import (
    bounded_logits_bytes,
    graph_bytes,
    index_rows,
    largest_context,
    logits_budget,
    logits_bytes,
    transients,
)
from glm_kvplan.engines.sglang.weight_placement import placement
from glm_kvplan.errors import InputError
from glm_kvplan.memory.budget import MemoryBudget, memory_budget, show_gib
from glm_kvplan.memory.gpu import find_gpu
from glm_kvplan.memory.placement import Placement
from glm_kvplan.memory.weights import estimate_weights
from glm_kvplan.model.loader import bundled_geometry
from glm_kvplan.tensor import device_bytes
from glm_kvplan.units import GIB

GEOMETRY = bundled_geometry()
CASES = DATA / "cases"
B200 = find_gpu("b200")
# Captured tokens of the operator's step counts (5, 3, 2 or 3, 2 steps) at its largest captured batch.
B200_CASES = {
    "b200x4-nvfp4-tp4-mtp6-frac80": (96 * (6 + 4 + 3), 9.0),
    "b200x4-nvfp4-tp4-mtp4-slots700": (96 * (4 + 3), 5.08),
}


def case(name: str) -> dict[str, Any]:
    return json.loads((CASES / f"{name}.json").read_text(encoding="utf-8"))  # type: ignore[no-any-return]


def launched(name: str) -> Deployment:
    flags = {key: value for key, value in case(name)["flags"].items() if key != "context_rows"}
    return Deployment(
        **flags,
        kv_layout="fp8_raw",
        max_draft_tokens=flags["speculative_num_draft_tokens"],
        linear_attn_tp_size=flags["tp_size"],
        decode_graph_max_bs=96,
    )


def placed(deployment: Deployment) -> Placement:
    return placement(GEOMETRY, deployment, gpu=B200)


def printed_sizes(name: str) -> PoolSizes:
    printed = case(name)["printed"]
    return PoolSizes(printed["kv_tokens"], printed["max_mamba_cache_size"], case(name)["flags"]["max_running_requests"])


def given_budget(name: str) -> MemoryBudget:
    memory = case(name)["memory"]
    return memory_budget(
        placed(launched(name)),
        gpu=B200,
        pre_gib=memory["pre_model_load_gib"],
        weights_gib=memory["target_weights_gib"],
        draft_weights_gib=memory["draft_weights_gib"],
        weights=estimate_weights(GEOMETRY, placed(launched(name)), "nvfp4-mlp"),
    )


def case_map(name: str, release: str = "0.5.20") -> MemoryMap:
    sizes = printed_sizes(name)
    return memory_map(one_rank(launched(name), load_profile(release)), sizes, given_budget(name))


@pytest.mark.parametrize("name", B200_CASES)
def test_free_after_the_pools_as_printed(name: str) -> None:
    """Within 0.1 GiB of the operator's line, whose own memory figures carry 0.005 each."""
    assert case_map(name).unallocated / GIB == pytest.approx(case(name)["printed"]["avail_after_pools_gib"], abs=0.1)


@pytest.mark.parametrize("name", B200_CASES)
def test_solved_from_the_printed_memory(name: str) -> None:
    printed, budget = printed_sizes(name), given_budget(name)
    profile = load_profile("0.5.20")
    solved = attempt(one_rank(launched(name), profile), budget.pre_gib, budget.available_gib)
    assert abs(solved.state_slots - printed.state_slots) <= 1
    assert solved.tokens == pytest.approx(printed.tokens, rel=0.0025)
    assert solved.running_requests == printed.running_requests


@pytest.mark.parametrize("name", B200_CASES)
def test_estimated_memory_covers_the_measured(name: str) -> None:
    weights = estimate_weights(GEOMETRY, placed(launched(name)), "nvfp4-mlp")
    estimated, measured = memory_budget(placed(launched(name)), gpu=B200, weights=weights), given_budget(name)
    assert estimated.how == "estimated"
    assert abs(estimated.available_gib - measured.available_gib) <= estimated.error_gib
    assert abs(estimated.pre_gib - 176.25) <= 0.5
    assert show_gib(estimated.available_gib, estimated.how) == f"~{estimated.available_gib:.1f}"


@pytest.mark.parametrize("release", releases())
@pytest.mark.parametrize("name", B200_CASES)
def test_segments_add_up_and_hold_every_pool_byte(name: str, release: str) -> None:
    deployment, profile, sizes = launched(name), load_profile(release), printed_sizes(name)
    sizes = sizes._replace(tokens=sizes.tokens // 256 * 256)
    deployment = replace(deployment, page_size=256 if profile.page_size_times_index_kpool else 64)
    found = memory_map(one_rank(deployment, profile), sizes, given_budget(name))
    assert sum(segment.nbytes for segment in found.segments) == found.total
    assert found.pools == device_bytes(tensor_specs(one_rank(deployment, profile), sizes))
    names = [segment.name for segment in found.segments]
    assert len(set(names)) == len(names) and names[-1] == "free"
    by_name = {segment.name: segment.nbytes for segment in found.segments}
    page, layers = deployment.page_size, 12
    assert by_name["padding page"] == layers * (page * 512 + 8448)
    assert ("draft-layer state slab" in by_name) == profile.draft_layer_in_state_pool
    uncharged = {"padding page", "draft-layer state slab", "compress tails", "request table", "free lists"}
    assert {s.name for s in found.segments if s.components and not s.charged} == uncharged & set(names)


def test_worked_example_b() -> None:
    """ENGINE_MODEL's B200 TP4 example, in decimal bytes: the slab, the tables and the charged pools."""
    deployment = Deployment(
        tp_size=4, linear_attn_tp_size=4, kv_layout="fp8_raw", speculative_algorithm="EAGLE",
        speculative_num_steps=3, speculative_eagle_topk=1, speculative_num_draft_tokens=4, max_draft_tokens=4,
        max_running_requests=48, mem_fraction_static=0.81225,
    )  # fmt: skip
    budget = memory_budget(placed(deployment), pre_gib=177.0, available_gib=126.0)
    assert (budget.how, budget.error_gib) == ("measured", 0.0)
    found = memory_map(one_rank(deployment, load_profile("0.5.21")), PoolSizes(8_563_520, 706, 48), budget)
    by_name = {segment.name: segment.nbytes for segment in found.segments}
    assert by_name["weights"] == 51 * GIB
    slots, snapshots = 912_199_680 + 25_947_013_120, 7_193_231_360 + 252_887_040
    assert by_name["draft-layer state slab"] == (slots + snapshots) // 35
    assert by_name["state slots"] == slots // 35 * 34
    assert by_name["verify snapshots"] == snapshots // 35 * 34
    assert by_name["compress tails"] == 2_252_800 + 204_800
    assert by_name["latent KV"] == 48_230_105_088 - 11 * 64 * 512
    assert by_name["draft KV"] == 4_384_555_008 + 1_130_393_088 - 64 * 512 - 8448
    # The example's sum leaves out the free lists and the two maps of 49 rows (4 and 16 bytes each).
    assert found.pools - by_name["free lists"] - 49 * (4 + 16) == 100_692_700_764
    assert found.total == 177 * GIB and found.unallocated == 126 * GIB - found.pools


def test_memory_given_and_missing() -> None:
    deployment = Deployment(tp_size=4, speculative_algorithm="EAGLE")
    for wrong, message in (
        ({}, "--pre-gib or --gpu"),
        ({"pre_gib": 176.0}, "--available-gib"),
        ({"pre_gib": 176.0, "available_gib": 180.0}, "above"),
        ({"pre_gib": 500.0, "available_gib": 100.0, "gpu": B200}, "more than a B200"),
        ({"pre_gib": -1.0, "available_gib": 1.0}, "not negative"),
        ({"pre_gib": float("nan"), "available_gib": 1.0}, "number of GiB"),
        ({"pre_gib": 176.0, "weights_gib": 44.0}, "--draft-weights-gib"),
        ({"gpu": B200, "weights_gib": 200.0, "draft_weights_gib": 1.0}, "do not fit"),
    ):
        with pytest.raises(InputError, match=message):
            memory_budget(placed(deployment), **wrong)  # type: ignore[arg-type]


def test_one_card_and_integrated_cards() -> None:
    deployment = Deployment(tp_size=1)
    h100 = memory_budget(placed(deployment), gpu=find_gpu("h100"), weights_gib=10.0)
    assert 78.43 - h100.error_gib <= h100.pre_gib <= 78.81 + h100.error_gib  # public boot logs of one H100
    assert memory_budget(placed(deployment), gpu=find_gpu("gb10"), weights_gib=10.0).error_gib >= 4


def test_measured_readings_win_over_the_weights() -> None:
    deployment = Deployment(tp_size=4, speculative_algorithm="EAGLE", linear_attn_tp_size=4)
    weights = estimate_weights(GEOMETRY, placed(deployment), "fp8")
    for available in (90.0, 110.0):  # less and more than the estimate leaves
        budget = memory_budget(placed(deployment), pre_gib=176.0, available_gib=available, weights=weights)
        found = memory_map(one_rank(deployment, load_profile()), PoolSizes(64000, 50, 10), budget)
        loaded = [
            s
            for s in found.segments
            if s.name in ("weights", "draft weights", "draft embedding and head", "left by loading")
        ]
        assert sum(segment.nbytes for segment in loaded) == int((176 - available) * GIB)
        assert found.unallocated == int(available * GIB) - found.pools


def test_indexer_logits_as_the_failed_allocations() -> None:
    incident = case("indexer-transient")
    chunk = incident["flags"]["chunked_prefill_size"]
    for rows, failed in zip(incident["flags"]["context_rows"], incident["printed"]["failed_alloc_gib"], strict=True):
        assert f"{logits_bytes(chunk, rows) / GIB:.2f}" == f"{failed:.2f}"


def test_index_rows_are_pooled_and_paged() -> None:
    assert index_rows((4096,), 4) == 1024
    assert index_rows((4096, 4096), 4) == 2048
    assert index_rows((257,), 4) == 64 and index_rows((260,), 4) == 128
    assert index_rows((1_048_576,), 1) == 1_048_576


@given(free=st.integers(0, 200 * GIB), chunk=st.sampled_from([2048, 4096, 8192, 16384]), kpool=st.sampled_from([1, 4]))
def test_largest_context_is_the_largest(free: int, chunk: int, kpool: int) -> None:
    context = largest_context(free, chunk, kpool)
    assert logits_bytes(chunk, index_rows((context,), kpool)) <= free
    assert logits_bytes(chunk, index_rows((context + 1,), kpool)) > free


@given(
    free=st.integers(1 * GIB, 100 * GIB), fraction=st.floats(0.3, 0.99), context=st.integers(1, 1 << 20),
    rocm=st.booleans(),
)  # fmt: skip
def test_bounded_logits_fit_their_budget(free: int, fraction: float, context: int, rocm: bool) -> None:
    budget = logits_budget(180 * GIB, free, fraction, rocm=rocm)
    assert budget <= free * 0.2 and budget <= 180 * GIB * 0.3
    assert not rocm or budget < 2**31
    rows = index_rows((context,), 4)
    nbytes = bounded_logits_bytes(8192, rows, budget)
    assert nbytes <= logits_bytes(8192, rows)
    one_row = logits_bytes(1, rows)
    # The engine compares the unpadded matrix with the budget, so the padding of the last columns may exceed it.
    assert nbytes <= max(budget + 8192 * 255 * 4, one_row, 8_000_000 * 4 + 8192 * 255 * 4)


@pytest.mark.parametrize("name", B200_CASES)
def test_graphs_within_their_error(name: str) -> None:
    captured, printed = B200_CASES[name]
    estimated = graph_bytes(launched(name), 96, captured) / GIB
    assert abs(estimated - printed) < 0.4 * printed


@pytest.mark.parametrize(
    ("name", "verdict"), [("b200x4-nvfp4-tp4-mtp6-frac80", "tight"), ("b200x4-nvfp4-tp4-mtp4-slots700", "fits")]
)
def test_the_server_that_ran_out_and_the_one_that_did_not(name: str, verdict: str) -> None:
    """The operator saw out-of-memory errors at 0.80 and none at 0.75, on a build without the bound."""
    found = case_map(name)
    needs = transients(
        one_rank(launched(name), load_profile("0.5.20")),
        printed_sizes(name),
        free_bytes=found.usable,
        total_bytes=found.total,
        captured_tokens=B200_CASES[name][0],
    )
    result = headroom(found, needs)
    assert result.verdict == verdict
    assert ("prefill batch" in str(result.message)) == (verdict == "tight")


def test_pools_fit_and_the_first_prompt_dies() -> None:
    """8.5 GiB free where the unbounded indexer wants 8192 x 262144 rows: dies on 0.5.20, chunks on 0.5.21."""
    deployment = Deployment(
        tp_size=4, linear_attn_tp_size=4, kv_layout="fp8_raw", mem_fraction_static=0.95, multimodal=False,
        max_running_requests=8, decode_graph="disabled", chunked_prefill_size=8192,
    )  # fmt: skip
    budget = memory_budget(placed(deployment), pre_gib=176.0, available_gib=100.0)
    sizes = PoolSizes(2_000_000 // 256 * 256, 50, 8)
    pools = memory_map(one_rank(deployment, load_profile("0.5.20")), sizes, budget).pools
    budget = memory_budget(placed(deployment), pre_gib=176.0, available_gib=pools / GIB + 8.5)
    verdicts = {}
    for release in ("0.5.20", "0.5.21"):
        found = memory_map(one_rank(deployment, load_profile(release)), sizes, budget)
        needs = transients(
            one_rank(deployment, load_profile(release)), sizes, free_bytes=found.usable, total_bytes=found.total
        )
        verdicts[release] = headroom(found, needs)
    assert verdicts["0.5.20"].verdict == "short"
    assert "the pools fit, but the first prompt of 1,048,570 tokens dies" in str(verdicts["0.5.20"].message)
    assert verdicts["0.5.21"].verdict == "fits"
    more = memory_budget(placed(deployment), pre_gib=176.0, available_gib=pools / GIB - 1)
    found = memory_map(one_rank(deployment, load_profile("0.5.20")), sizes, more)
    assert headroom(found, needs).verdict == "short" and found.unallocated < 0


def test_cost() -> None:
    name = "b200x4-nvfp4-tp4-mtp6-frac80"
    budget, deployment, profile, sizes = given_budget(name), launched(name), load_profile("0.5.20"), printed_sizes(name)
    best = 1.0
    for _ in range(50):
        start = time.perf_counter()
        memory_map(one_rank(deployment, profile), sizes, budget)
        best = min(best, time.perf_counter() - start)
    assert best < 500e-6
