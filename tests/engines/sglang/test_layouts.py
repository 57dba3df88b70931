"""Other layouts for a demand that does not fit: which are asked for, in what order, and which are offered."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from glm_kvplan.contexts import Contexts
from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.engines.sglang.profile import load_profile
from glm_kvplan.engines.sglang.sizing.advice import advise
from glm_kvplan.engines.sglang.sizing.layouts import nearest_layouts
from glm_kvplan.engines.sglang.sizing.served_requests import Demand
from glm_kvplan.engines.sglang.sizing.what_if import Memory, Setup
from glm_kvplan.errors import InputError, RefusedError
from glm_kvplan.model.loader import bundled_geometry
from glm_kvplan.units import GIB

SLOT = 34 * (36_864 + 1_048_576)  # one state slot on each of four ranks
PAGE = 64 * 11 * (512 + 132)  # of raw rows and their index keys
PLAIN = Deployment(
    tp_size=4, linear_attn_tp_size=4, kv_cache_dtype="fp8_e4m3", kv_layout="fp8_raw", mem_fraction_static=0.75,
    multimodal=False, chunked_prefill_size=16384,
)  # fmt: skip
TEN = Demand(Contexts((100,), (1,)), 10)  # two pages and five slots each
EXACT = 51 * SLOT + 20 * PAGE  # fifty slots and the pool's own, and twenty pages
SEARCHED = {"chunked_prefill_size", "max_total_tokens", "max_mamba_cache_size"}


def setup_of(deployment: Deployment, nbytes: float, resolver: Callable[..., Deployment]) -> Setup:
    """A setup with `nbytes` for states and tokens: 160 GiB before the load, a quarter of which stays free."""

    def memory(asked: Deployment) -> Memory:
        if asked.attn_dp_size == 2:
            raise InputError("nobody knows")
        return Memory(160.0, 40.0 + nbytes / GIB)

    return Setup(bundled_geometry(), load_profile("0.5.21"), deployment, memory, resolver)


def test_layouts_are_asked_for_from_the_smallest() -> None:
    """Every width from 4 to 64, as it is and with twice the workers, with each change of a dtype or none."""
    asked: list[dict[str, Any]] = []

    def resolver(**changes: Any) -> Deployment:
        asked.append(changes)
        if changes.get("tp_size") != 16 or "dp_size" in changes:
            raise RefusedError("not here")
        return replace(PLAIN, **changes, linear_attn_tp_size=16)

    advice = advise(setup_of(replace(PLAIN, kv_layout="bf16"), EXACT / 3, resolver), TEN, keep_fraction=True)
    assert [layout.changes for layout in advice.layouts] == [{"tp_size": 16}]  # what only adds to it is not offered
    assert (advice.layouts[0].gpus, advice.layouts[0].served.requests) == (16, 10)
    singles: list[dict[str, Any]] = [{}, {"kv_cache_dtype": "fp8_e4m3"}, {"mamba_ssm_dtype": "bfloat16"}]
    workers: list[dict[str, Any]] = [{}, {"dp_size": 2, "enable_dp_attention": True}]
    widths: list[dict[str, Any]] = [{}, {"tp_size": 8}]
    smaller = [width | worker | single for width in widths for worker in workers for single in singles]
    alone: list[dict[str, Any]] = [{}, {"mamba_ssm_dtype": "bfloat16"}]  # need no resolver
    expected = [changes for changes in smaller if changes not in alone] + [{"tp_size": 16}]
    tried = [changes for changes in asked if not SEARCHED & changes.keys()]
    assert sorted(map(str, map(sorted, map(dict.items, tried)))) == sorted(
        map(str, map(sorted, map(dict.items, expected)))
    )
    assert [changes.get("tp_size", 0) for changes in tried] == sorted(changes.get("tp_size", 0) for changes in tried)


def test_every_layout_up_to_64_is_asked_for() -> None:
    """Six ranks of three workers: six workers only where the ranks divide; rings where there are drafts."""
    asked: list[dict[str, Any]] = []

    def resolver(**changes: Any) -> Deployment:
        asked.append(changes)
        raise RefusedError("not here")

    drafts = replace(
        PLAIN, tp_size=9, attn_dp_size=3, linear_attn_tp_size=3, speculative_algorithm="EAGLE",
        speculative_num_draft_tokens=4, max_draft_tokens=4, mamba_ssm_dtype="bfloat16",
    )  # fmt: skip
    assert nearest_layouts(setup_of(drafts, EXACT, resolver), TEN, 5) == []
    rings: dict[str, Any] = {"enable_linear_replayssm_spec": True}
    six: dict[str, Any] = {"dp_size": 6, "enable_dp_attention": True}
    wider = [{"tp_size": tp} | more for tp in (18, 36) for more in ({}, rings, six, six | rings)]
    assert sorted(map(str, map(sorted, map(dict.items, asked)))) == sorted(
        map(str, map(sorted, map(dict.items, [rings, *wider])))
    )
    asked.clear()
    nearest_layouts(setup_of(replace(PLAIN, tp_size=32, mamba_ssm_dtype="bfloat16"), EXACT, resolver), TEN, 5)
    assert {changes.get("tp_size") for changes in asked} == {None, 64}


def test_layouts_offered() -> None:
    """Raw rows or bf16 states do on four ranks (two replicas); twice the workers nobody knows; eight ranks do alone."""
    base = replace(PLAIN, kv_layout="bf16", kv_cache_dtype="bfloat16", replicas=2)
    twenty = TEN._replace(concurrency=20)

    def resolver(**changes: Any) -> Deployment:
        workers = changes.pop("dp_size", 1)
        changes.pop("enable_dp_attention", None)
        layout = "fp8_raw" if changes.get("kv_cache_dtype") == "fp8_e4m3" else "bf16"
        known = {"kv_layout": layout, "attn_dp_size": workers, "linear_attn_tp_size": changes.get("tp_size", 4)}
        return replace(base, **changes, **known)  # type: ignore[arg-type]

    setup = setup_of(base, EXACT, resolver)
    found = nearest_layouts(setup, twenty, 5)
    assert [layout.changes for layout in found] == [
        {"kv_cache_dtype": "fp8_e4m3"}, {"mamba_ssm_dtype": "bfloat16"}, {"tp_size": 8},
    ]  # fmt: skip
    assert [layout.gpus for layout in found] == [8, 8, 16]
    assert all(layout.served.requests == 20 for layout in found)
    assert [layout.changes for layout in nearest_layouts(setup, twenty, 2)] == [layout.changes for layout in found[:2]]
    assert nearest_layouts(setup, twenty, 0) == []


# -- what a setup can change -------------------------------------------------------------------------------------------


def refuse(**changes: Any) -> Deployment:
    raise RefusedError("not here")


def test_flags_that_stand_alone_need_no_resolver() -> None:
    alone = {
        "mem_fraction_static": 0.8, "mamba_full_memory_ratio": 1.0, "max_mamba_cache_size": 9, "max_total_tokens": 640,
        "mamba_ssm_dtype": "bfloat16", "context_length": 4096,
    }  # fmt: skip
    setup = setup_of(PLAIN, EXACT, refuse)
    changed = setup.changed(**alone)
    assert changed is not None and changed.deployment == replace(PLAIN, **alone)  # type: ignore[arg-type]
    assert setup.changed(max_running_requests=8) is None  # others' defaults may read it
    bare = replace(setup, deployment=replace(PLAIN, attn_dp_size=4), resolve_with=None)
    more = {
        "max_running_requests": 8, "enable_linear_replayssm_spec": True, "chunked_prefill_size": 8192,
        "speculative_num_steps": 5, "speculative_eagle_topk": 1, "speculative_num_draft_tokens": 6,
    }  # fmt: skip
    moved = bare.changed(**alone, **more)
    assert moved is not None and moved.deployment.max_draft_tokens == 6
    chunk = moved.deployment.chunked_prefill_size  # one worker's of four
    assert chunk == 2048 and type(chunk) is int
    assert moved.deployment.speculative_num_steps == 5 and moved.resolve_with is None
    assert bare.changed(tp_size=8) is None and bare.changed(**more, tp_size=8) is None


def test_changes_add_up() -> None:
    asked: list[dict[str, Any]] = []

    def resolver(**changes: Any) -> Deployment:
        asked.append(changes)
        return PLAIN

    first = setup_of(PLAIN, EXACT, resolver).changed(max_total_tokens=640)
    assert first is not None and not asked
    second = first.changed(tp_size=8)
    assert second is not None
    assert second.changed(tp_size=16, dp_size=2) is not None
    assert asked == [{"max_total_tokens": 640, "tp_size": 8}, {"max_total_tokens": 640, "tp_size": 16, "dp_size": 2}]
