"""Other layouts for a demand that does not fit: which are tried, in what order, and which are offered."""

from typing import Any

import pytest
from hand_counted import EXACT, PLAIN, SLOT, TEN, WIDE, WIDE_PAGE, Flags, server_of

from glm_kvplan.engines.planner import plan
from glm_kvplan.engines.sglang.plan import Plan
from glm_kvplan.engines.sglang.sizing.advice import advise
from glm_kvplan.engines.sglang.sizing.layouts import serving_layouts
from glm_kvplan.engines.sglang.sizing.server import Server
from glm_kvplan.errors import RefusedError
from glm_kvplan.memory.given import MemoryGiven

BF16: Flags = {name: value for name, value in WIDE.items() if name != "max_mamba_cache_size"}
SPECULATION = (
    "speculative_algorithm",
    "speculative_num_steps",
    "speculative_eagle_topk",
    "speculative_num_draft_tokens",
)
SEARCHED = {"chunked_prefill_size", "max_total_tokens", "max_mamba_cache_size"}


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """Every change of flags that is resolved from here on, those that fix a split left out."""
    seen: list[dict[str, Any]] = []
    with_flags = Plan.with_flags

    def noted(self: Plan, **changes: Any) -> Plan:
        if not SEARCHED & changes.keys():
            seen.append(changes)
        return with_flags(self, **changes)

    monkeypatch.setattr(Plan, "with_flags", noted)
    return seen


def keyed(changes: list[dict[str, Any]]) -> list[str]:
    return sorted(str(sorted(each.items())) for each in changes)


def test_layouts_are_tried_from_the_smallest(asked: list[dict[str, Any]]) -> None:
    """As it is and with twice the workers, with each change of a dtype or none; then twice the ranks. Up to there all
    workers that divide the ranks, too.
    """
    server = server_of(BF16, EXACT / 3)
    many = TEN._replace(concurrency=10**6)
    assert serving_layouts(server, many, 5) == []
    singles: list[dict[str, Any]] = [{}, {"kv_cache_dtype": "fp8_e4m3"}, {"mamba_ssm_dtype": "bfloat16"}]
    workers: list[dict[str, Any]] = [{}, {"dp_size": 2, "enable_dp_attention": True}]
    widths: list[dict[str, Any]] = [{}, {"tp_size": 8}, {"tp_size": 16}, {"tp_size": 32}, {"tp_size": 64}]
    expected = [width | worker | single for width in widths for worker in workers for single in singles]
    more = [(width, groups) for width, most in zip(widths, (4, 8), strict=False) for groups in (4, 8) if groups <= most]
    expected += [width | {"dp_size": groups, "enable_dp_attention": True} for width, groups in more]
    tried = [changes for changes in asked if set(changes) != {"mem_fraction_static"}]
    assert keyed(tried) == keyed(expected[1:])
    assert [changes.get("tp_size", 0) for changes in tried] == sorted(changes.get("tp_size", 0) for changes in tried)


def test_groups_that_divide_the_ranks_and_rings_where_there_are_drafts(asked: list[dict[str, Any]]) -> None:
    """Six ranks of three workers: six workers as they are and on twelve ranks, where twelve are tried alone."""
    drafts = PLAIN | {
        "tp_size": 6, "dp_size": 3, "enable_dp_attention": True, "speculative_algorithm": "EAGLE",
        "mamba_ssm_dtype": "bfloat16", "chunked_prefill_size": 49152,
    }  # fmt: skip
    assert serving_layouts(server_of(drafts, EXACT), TEN._replace(concurrency=10**6), 5) == []
    rings: dict[str, Any] = {"enable_linear_replayssm_spec": True}
    six: dict[str, Any] = {"dp_size": 6, "enable_dp_attention": True}
    wider = [width | more for width in ({}, {"tp_size": 12}, {"tp_size": 24}, {"tp_size": 48})
             for more in ({}, rings, six, six | rings) if width or more]  # fmt: skip
    wider.append({"tp_size": 12, "dp_size": 12, "enable_dp_attention": True})
    tried = [changes for changes in asked if set(changes) != {"mem_fraction_static"}]
    assert keyed(tried) == keyed(wider)


def test_layouts_offered() -> None:
    """FP8 rows or bf16 states do on four ranks (two replicas), and eight ranks alone."""
    pages = (51 * SLOT + 20 * WIDE_PAGE - 1) // WIDE_PAGE  # a byte too little for ten of bf16 rows
    assert pages > 20
    server = server_of(BF16 | {"dp_size": 2}, 51 * SLOT + 20 * WIDE_PAGE - 1)
    twenty = TEN._replace(concurrency=20)
    found = serving_layouts(server, twenty, 5)
    assert [layout.changes for layout in found] == [
        {"kv_cache_dtype": "fp8_e4m3"}, {"mamba_ssm_dtype": "bfloat16"}, {"tp_size": 8},
    ]  # fmt: skip
    assert [layout.gpus for layout in found] == [8, 8, 16]
    assert [layout.estimated for layout in found] == [False, False, True]
    assert all(layout.served.requests == 20 for layout in found)
    assert [layout.changes for layout in serving_layouts(server, twenty, 2)] == [layout.changes for layout in found[:2]]
    assert serving_layouts(server, twenty, 0) == []


def test_layouts_of_measured_memory_are_those_of_the_layout_itself() -> None:
    """40 GiB read on four ranks of an H200 deny no layout whose weights lie otherwise: those are estimated anew."""
    plain = {"tp_size": 4}
    server = Server(plan(plain, gpu="h200"), MemoryGiven(138.0, 40.0))
    many = TEN._replace(concurrency=300)
    advice = advise(server, many)
    assert not advice.holds
    (wider,) = (layout for layout in advice.layouts if layout.changes == {"tp_size": 8})
    assert wider.estimated
    typed = Server(plan(plain | wider.changes, gpu="h200"), MemoryGiven(138.0))
    assert typed.budget.available_gib > 40.0 and advise(typed, many, nearest=0).holds


# -- what a server can change ------------------------------------------------------------------------------------------


def test_changes_are_resolved_and_add_up() -> None:
    server = server_of(PLAIN, EXACT)
    wider = server.with_flags(dp_size=4, enable_dp_attention=True, chunked_prefill_size=8192)
    assert wider.deployment.chunked_prefill_size == 2048  # one worker's of four
    drafts = wider.with_flags(
        speculative_algorithm="EAGLE", speculative_num_steps=5, speculative_eagle_topk=1,
        speculative_num_draft_tokens=6, max_running_requests=8, max_total_tokens=640,
    )  # fmt: skip
    deployment = drafts.deployment
    assert (deployment.attn_dp_size, deployment.max_draft_tokens, deployment.max_total_tokens) == (4, 6, 640)
    back = drafts.with_flags(max_total_tokens=None, **dict.fromkeys(SPECULATION))
    assert (back.deployment.max_draft_tokens, back.deployment.max_total_tokens) == (None, None)
    assert server.tried(tp_size=5) is None  # the heads do not divide
    with pytest.raises(RefusedError):
        server.with_flags(tp_size=5)


def test_readings_hold_where_the_weights_lie_as_they_were_read() -> None:
    server = server_of(PLAIN, EXACT)
    same = server.with_flags(max_total_tokens=640, mem_fraction_static=0.8, kv_row_layout="bf16")
    assert not same.memory_moved and same.budget.available_gib == server.budget.available_gib
    other = same.with_flags(tp_size=8)
    assert other.memory_moved and other.budget.how == "estimated" and other.budget.pre_gib == 160.0
    back = other.with_flags(tp_size=4)
    assert not back.memory_moved and back.budget == server.budget
    one = server_of(PLAIN | {"tp_size": 1}, EXACT).with_flags(tp_size=4)  # several cards take buffers to communicate
    assert one.memory_moved and one.budget.pre_gib == Server(one.plan, MemoryGiven()).budget.pre_gib != 160.0
    estimated = Server(server.plan, MemoryGiven(160.0))
    assert not estimated.with_flags(tp_size=8).memory_moved  # nothing was read of the weights
