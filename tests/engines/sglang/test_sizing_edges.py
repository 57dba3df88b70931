"""The sizing at its edges: exact floors, limits just met, stages that hold nothing, and every limit in words."""

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hand_counted import one_rank

from glm_kvplan.cli.workload_options import read_workload
from glm_kvplan.engines.planner import Plan, plan
from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.engines.sglang.profile import load_profile
from glm_kvplan.engines.sglang.rank import Rank, ranks
from glm_kvplan.engines.sglang.sizing.binding_limits import limits
from glm_kvplan.engines.sglang.sizing.failures import refusal
from glm_kvplan.engines.sglang.sizing.rank_costs import Costs, costs, stage_costs
from glm_kvplan.engines.sglang.sizing.sizing_steps import sizing_steps
from glm_kvplan.engines.sglang.sizing.solver import Solution, attempt, attempt_stages, size
from glm_kvplan.engines.sglang.sizing.workload_cost import Workload, estimate
from glm_kvplan.errors import InputError
from glm_kvplan.model.loader import bundled_geometry
from glm_kvplan.units import GIB, LARGEST_GIB

GEOMETRY = bundled_geometry()
PROFILE = load_profile("0.5.21")
MIB_A_SLOT = Costs(
    cell_bytes=1024,
    target_bytes=1024,
    index_bytes=0,
    slot_bytes=1 << 20,
    ring_bytes=0,
    slots_per_request=5,
    snapshot_drafts=0,
    state_slots=99,
    state_ratio=0.9,
    page_size=64,
    max_total_tokens=None,
    no_cell_tokens=1 << 20,
    context_length=1 << 20,
    requests=None,
    mem_fraction_static=1.0,
    reserve_gib=0.0,
)


def sized(pre: float, available: float, **changes: Any) -> Solution:
    return size(MIB_A_SLOT._replace(**changes), pre, available)


# -- floors and bounds of the solver -----------------------------------------------------------------------------------


def test_state_slots_are_floored_as_the_engine_floors_them() -> None:
    """`//` of two floats is the exact floor; a division rounds up to the next slot where the quotient nearly is one."""
    slot, drafts, ratio = 76_316_672, 4, 5  # bf16 states: 1.8 slots are no whole number of bytes
    price = slot * (1 + drafts / ratio)
    told_apart = 0
    for wanted in range(200, 6000):
        share = float(Fraction(price) * wanted) + slot * (1 + drafts)
        available = share * 2 / GIB
        solution = sized(
            0.0,
            available,
            state_slots=None,
            state_ratio=1.0,
            slot_bytes=slot,
            snapshot_drafts=drafts,
            slots_per_request=ratio,
            requests=48,
        )
        left = available / 2 * GIB - slot * (1 + drafts)
        assert solution.state_slots == Fraction(left) // Fraction(price)
        told_apart += solution.state_slots != int(left / price)
    assert told_apart > 10


def test_memory_at_the_ends_of_what_can_be() -> None:
    assert sized(0.0, 1.0).failure is None
    assert sized(0.5, 1.0).failure is None
    assert sized(LARGEST_GIB, LARGEST_GIB).failure is None
    for pre, available in ((-1e-9, 1.0), (1.0, -1e-9), (LARGEST_GIB * 1.01, 1.0), (1.0, LARGEST_GIB * 1.01)):
        with pytest.raises(InputError, match=f"memory of {pre} GiB before and {available} GiB"):
            sized(pre, available)


def test_nothing_left_is_no_memory_and_one_byte_is_too_little() -> None:
    """100 slots of a MiB take all of 100 MiB: nothing is left; a page of 64 KiB more is a page of tokens."""
    nothing = sized(0.0, 100 / 1024)
    assert (nothing.token_gib, nothing.failure) == (0.0, "no_token_memory")
    assert (nothing.token_budget_bytes, nothing.token_capacity, nothing.sizes) == (0, 0, (0, 99, 0))
    assert (nothing.state_budget_bytes, nothing.charged_requests, nothing.snapshot_bytes) == (0.0, 0, 0)
    assert sized(0.0, 100 / 1024 + 1 / GIB).failure == "no_tokens"
    page = sized(0.0, 100 / 1024 + 65536 / GIB)
    assert (page.sizes, page.failure) == ((64, 99, 19), None)
    assert (page.pre_gib, page.available_gib, page.charged_requests) == (0.0, 100 / 1024 + 65536 / GIB, 0)


def test_one_token_serves_no_request() -> None:
    one = sized(0.0, 100 / 1024 + 1024 / GIB, page_size=1)
    assert (one.tokens, one.running_requests, one.failure) == (1, 0, "no_requests")
    assert "1 token serves no request" in refusal(one).reason  # not the slots: there are enough of them
    five = sized(0.0, 100 / 1024 + 5 * 1024 / GIB, page_size=1)
    assert (five.tokens, five.running_requests) == (5, 2) and type(five.running_requests) is int


def test_caps_cut_to_whole_pages() -> None:
    for cap, tokens in ((640, 640), (639, 576), (65, 64)):
        capped = sized(0.0, 1.0, max_total_tokens=cap)
        assert capped.tokens == tokens and type(capped.tokens) is int
        limited = size(MIB_A_SLOT, 0.0, 1.0, cap)
        assert limited.tokens == tokens and type(limited.tokens) is int
        assert limited.token_capacity == sized(0.0, 1.0).tokens


def test_requests_follow_the_contexts_that_fit() -> None:
    """Between its bounds the engine's estimate is tokens / context * 512."""
    many = {"max_total_tokens": 1 << 20, "slots_per_request": 1, "state_slots": 8000}
    for context, requests in (((1 << 20) // 6, 3072), (1 << 20, 2048), (1 << 16, 4096)):
        solution = sized(0.0, 100.0, context_length=context, **many)
        assert solution.running_requests == requests


def test_snapshots_are_charged_for_the_requests_that_slots_admit() -> None:
    drafts = {"snapshot_drafts": 4, "requests": 48}
    few, many = sized(0.0, 10.0, **drafts), sized(0.0, 10.0, **drafts, state_slots=1000)
    assert (few.charged_requests, few.snapshot_bytes) == (19, 20 * 4 << 20)
    assert (many.charged_requests, many.snapshot_bytes) == (48, 49 * 4 << 20)


# -- pipeline stages ---------------------------------------------------------------------------------------------------


def test_a_stage_without_full_attention_is_unbounded() -> None:
    """model_executor/pool_configurator.py:206-217 at 0.5.21: its cell costs nothing, the other stages decide."""
    deployment = Deployment(pp_size=45, disable_overlap_schedule=True)
    solutions = attempt_stages(one_rank(deployment, PROFILE), 130.0, 120.0)
    empty, full = solutions[0], solutions[3]
    assert (empty.costs.cell_bytes, empty.token_capacity) == (0, ((1 << 63) - 1) // 64 * 64)
    assert full.costs.cell_bytes == 1024 + 132
    assert empty.tokens == full.tokens == full.token_capacity
    assert limits(empty).tokens_per_slot == float("inf")
    assert limits(full).tokens_per_slot == full.costs.slot_bytes / 1156
    assert attempt(one_rank(deployment, PROFILE), 130.0, 120.0).costs == full.costs
    for caps, tokens in (({}, 1_048_576), ({"max_total_tokens": 4096}, 4096)):
        bare = replace(GEOMETRY, full_attention_layers=(), index_layers=())
        assert costs(one_rank(Deployment(**caps), PROFILE, bare)).no_cell_tokens == tokens


def test_the_rank_that_speaks_for_all_is_the_one_that_fails_or_holds_least() -> None:
    deployment = Deployment(pp_size=2, disable_overlap_schedule=True)
    stages = attempt_stages(one_rank(deployment, PROFILE), 130.0, 120.0)
    assert [stage.costs.cell_bytes for stage in stages] == [5 * 1156, 6 * 1156]
    assert attempt(one_rank(deployment, PROFILE), 130.0, 120.0) == stages[1]


def test_the_users_own_partition_counts_everywhere() -> None:
    """The first stage of 4 layers holds one full-attention layer and 3 KDA layers, the last 10 and 31."""
    own = Deployment(pp_size=2, pipeline_partition=(4, 41), disable_overlap_schedule=True)
    first, last = stage_costs(ranks(one_rank(own, PROFILE)))
    assert (first.cell_bytes, last.cell_bytes) == (1156, 10 * 1156)
    layer = 147_456 + 4_194_304
    assert first.slot_bytes == last.slot_bytes == 31 * layer
    split = plan({"pp_size": 2}, gpu="h200", environment={"SGLANG_PP_LAYER_PARTITION": "4,41"})
    answer = estimate(split, Workload(4096, 3))
    assert [rank.stage for rank in answer.stages] == [range(4), range(4, 45)]


def test_the_draft_costs_a_stage_with_a_single_layer_as_much() -> None:
    """model_executor/pool_configurator.py:216-250 at 0.5.21, for drafts of one layer and of two."""
    eagle = Deployment(
        pp_size=8,
        speculative_algorithm="EAGLE",
        speculative_num_draft_tokens=4,
        max_draft_tokens=4,
        max_running_requests=48,
        disable_overlap_schedule=True,
    )
    for drafts in (1, 2, 3):
        geometry = replace(GEOMETRY, num_nextn_predict_layers=drafts)
        one, *_, two = stage_costs(ranks(one_rank(eagle, PROFILE, geometry)))
        assert (one.target_bytes, two.target_bytes) == (1156, 2 * 1156)
        assert one.draft_bytes == two.draft_bytes == drafts * 1156


def test_a_checkpoint_with_a_single_kda_layer() -> None:
    single = replace(GEOMETRY, linear_attention_layers=(0,))
    assert costs(one_rank(Deployment(), PROFILE, single)).slot_bytes == 147_456 + 4_194_304


def test_no_draft_tokens_no_snapshots() -> None:
    unset = Deployment(speculative_algorithm="EAGLE", max_running_requests=48)
    assert costs(one_rank(unset, PROFILE)).snapshot_drafts == 0


def test_rings_are_charged_by_the_largest_stage() -> None:
    """53,616,640 bytes a slot over 34 layers; 31 of them on the stage that holds most."""
    replay = {
        "speculative_algorithm": "EAGLE",
        "speculative_num_draft_tokens": 4,
        "max_draft_tokens": 4,
        "max_running_requests": 48,
        "enable_linear_replayssm_spec": True,
    }
    assert costs(one_rank(Deployment(**replay), PROFILE)).ring_bytes == 53_616_640
    staged = Deployment(pp_size=2, pipeline_partition=(4, 41), disable_overlap_schedule=True, **replay)
    assert [rank.ring_bytes for rank in stage_costs(ranks(one_rank(staged, PROFILE)))] == [53_616_640 * 31 // 34] * 2


def test_two_stages_one_of_them_without_tokens() -> None:
    staged = Deployment(pp_size=2, pipeline_partition=(3, 42), disable_overlap_schedule=True)
    empty, full = stage_costs(ranks(one_rank(staged, PROFILE)))
    assert (empty.cell_bytes, empty.no_cell_tokens) == (0, (1 << 63) - 1)
    assert full.cell_bytes == 11 * 1156


def test_one_stage_by_itself() -> None:
    """`stage` gives a rank's own values, before the least pool over the ranks is taken."""
    deployment = Deployment(pp_size=2, disable_overlap_schedule=True)
    first, last = (
        size(costs(Rank(GEOMETRY, deployment, PROFILE, stage)), 130.0, 120.0) for stage in (range(22), range(22, 45))
    )
    assert first.tokens > last.tokens == attempt(one_rank(deployment, PROFILE), 130.0, 120.0).tokens
    assert [each.tokens for each in attempt_stages(one_rank(deployment, PROFILE), 130.0, 120.0)] == [last.tokens] * 2


def test_a_refusal_of_stages_says_why() -> None:
    deployment = Deployment(pp_size=2, disable_overlap_schedule=True, max_mamba_cache_size=10**6)
    for solution in attempt_stages(one_rank(deployment, PROFILE), 130.0, 120.0):
        error = refusal(solution)
        assert (error.kind, error.solution) == ("no_token_memory", solution)
        assert "leave no memory for tokens of the 120.00 GiB free after loading" in str(error)


# -- what flags fix in an estimate -------------------------------------------------------------------------------------


def planned(**flags: object) -> Plan:
    return plan({"tp_size": 8, **flags}, gpu="h200")


def sizes(workload: Workload, **flags: object) -> tuple[int, int, int]:
    found = estimate(planned(**flags), workload).sizes
    assert all(type(size) is int for size in found)
    return tuple(found)


def test_flags_fix_the_sizes_of_an_estimate() -> None:
    workload = Workload(100, 3)
    assert sizes(workload) == (3 * 128, 15, 3)
    assert sizes(workload, max_total_tokens=1000) == (960, 15, 3)
    assert sizes(workload, max_running_requests=64) == (3 * 128, 320, 64)
    assert sizes(workload, max_mamba_cache_size=77) == (3 * 128, 77, 3)
    groups = {"dp_size": 8, "enable_dp_attention": True}
    # ten slots a worker admit two requests of five (mem_cache/kv_cache_configurator.py:3119-3172 at 0.5.23)
    assert sizes(workload, max_running_requests=68, max_mamba_cache_size=81, **groups) == (128, 10, 2)


def test_a_default_of_the_engines_fixes_nothing() -> None:
    """48 requests under speculation are the engine's own; a share below one worker's is what the release leaves."""
    assert sizes(Workload(100, 3), speculative_algorithm="EAGLE") == (3 * 128, 15, 3)
    for release, requests in (("0.5.21", 0), ("0.5.23", 1)):
        flags = {"tp_size": 8, "dp_size": 8, "enable_dp_attention": True, "max_running_requests": 4}
        found = estimate(plan(flags, gpu="h200", engine=release), Workload(100, 8)).sizes
        assert found.running_requests == requests


def test_the_workload_that_is_left_out() -> None:
    assert read_workload(planned(), None, None) == (131_072, 1)
    assert read_workload(planned(context_length=5000), None, None) == (5000, 1)
    assert read_workload(planned(max_running_requests=64), None, None) == (131_072, 64)
    assert read_workload(planned(max_running_requests=64), "10", "2") == (10, 2)


def test_the_whole_deployment_is_its_ranks() -> None:
    answer = estimate(plan({"tp_size": 4, "pp_size": 2, "dp_size": 3}, gpu="h200"), Workload(6400, 6))
    assert (answer.ranks_per_stage, answer.ranks, answer.need) == (12, 24, (2 * 6400, 8, 2))
    assert answer.workload == (6400, 6)
    first, last = (
        {ledger.account.name: ledger.total for ledger in rank.ledgers}["latent_kv"] for rank in answer.stages
    )
    assert (first, last) == (5 * 1024 * 12800, 6 * 1024 * 12800)
    assert answer.everywhere("latent_kv") == 12 * (first + last)
    assert answer.largest is answer.stages[1]
    assert answer.allocated_everywhere == 12 * sum(rank.attribution.allocated for rank in answer.stages)


def test_a_step_says_what_set_the_tokens() -> None:
    """A cap is cut to whole pages, and one at the capacity or above it sets nothing."""
    capacity = sized(138.0, 100.0).token_capacity
    page = 64
    for asked, formula, tokens in (
        (None, "token_capacity", capacity),
        (1000, "max_total_tokens // page * page", 960),
        (capacity - 1, "max_total_tokens // page * page", capacity - page),
        (capacity, "token_capacity", capacity),
        (capacity + page, "token_capacity", capacity),
    ):
        flags = {} if asked is None else {"max_total_tokens": asked}
        (step,) = [step for step in sizing_steps(sized(138.0, 100.0, **flags)) if step.name == "max_total_num_tokens"]
        assert (step.formula, step.value) == (formula, tokens)
        assert eval(step.formula, dict(step.terms)) == tokens
