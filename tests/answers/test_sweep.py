"""The points of a sweep: against the engine's own sizing, and against `boot` of the same deployment."""

import gzip
import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given as having
from hypothesis import settings
from hypothesis import strategies as st
from paths import DATA

from glm_kvplan.answers.sweep.axes import flag_value, read_axis
from glm_kvplan.answers.sweep.points import Sweep, Workload
from glm_kvplan.contexts import contexts
from glm_kvplan.engines.planner import Given, given, plan
from glm_kvplan.engines.sglang.flags import FLAG
from glm_kvplan.engines.sglang.profile import load_profile
from glm_kvplan.engines.sglang.sizing.served_requests import served
from glm_kvplan.engines.sglang.sizing.start import boot
from glm_kvplan.errors import InputError, KvplanError
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.units import GIB, LARGEST_COUNT
from glm_kvplan.workload import DEFAULT_CONTEXT, Demand

RECORDS = [json.loads(line) for line in gzip.decompress((DATA / "sizing.jsonl.gz").read_bytes()).splitlines()]
EXAMPLE_B = {"tp_size": 4, "speculative_algorithm": "EAGLE"}
MEASURED = MemoryGiven(177.0, 126.0)


def rows(
    start: Given, *over: str, memory: MemoryGiven | None = None, workload: Workload | None = None
) -> list[dict[str, Any]]:
    sweep = Sweep(start, [read_axis(text) for text in over], memory, workload)
    names = [column.name for column in sweep.columns]
    found = [dict(zip(names, row, strict=True)) for row in sweep]
    assert len(found) == len(sweep)
    return found


def test_engines_give_example_b() -> None:
    found = rows(given(EXAMPLE_B, gpu="b200"), "engine=0.5.21,0.5.22,0.5.23", memory=MEASURED)
    sizes = [(row["max_total_num_tokens"], row["max_mamba_cache_size"], row["max_running_requests"]) for row in found]
    assert sizes == [(8_563_520, 706, 48), (9_932_544, 695, 48), (9_932_544, 695, 48)]
    assert [row["token_bytes"] for row in found] == [7728, 6540, 6540]
    assert {row["slot_bytes"] for row in found} == {36_904_960}
    assert {row["certainty"] for row in found} == {"derived"}
    allocated = 100_692_700_764  # the example's own sum, at 0.5.21, without free lists and maps
    lists = 8 * (8_563_520 // 64) + 8 * 706 + (4 + 16) * 49 + 8 * (11 + 1)
    assert found[0]["free_bytes"] == 126 * GIB - allocated - lists


def test_fractions_give_example_b() -> None:
    """The engine's own fractions typed out, 0.81225 at 0.5.21 and 0.8037 from 0.5.22 on."""
    found = rows(given(EXAMPLE_B, gpu="b200"), "engine=0.5.21,0.5.22", "mem_fraction_static=0.8037,0.81225",
                 memory=MEASURED)  # fmt: skip
    assert (found[1]["max_total_num_tokens"], found[1]["max_mamba_cache_size"]) == (8_563_520, 706)
    assert (found[2]["max_total_num_tokens"], found[2]["max_mamba_cache_size"]) == (9_932_544, 695)


def test_the_engines_own_records() -> None:
    """Every record that launch flags can say, as a sweep whose inputs are all axes."""
    sized = refused = 0
    for record in RECORDS:
        inputs, outputs = record["inputs"], record["outputs"]
        if inputs["pp_size"] > 1 or inputs["disaggregation_mode"] != "null" or not inputs["multimodal"]:
            continue
        drafts = inputs["draft_tokens"]
        flags: dict[str, object] = {"kv_row_layout": inputs["kv_layout"]}
        if drafts:
            flags |= {"speculative_algorithm": "EAGLE", "speculative_eagle_topk": 1}
            flags |= {"speculative_num_steps": drafts - 1, "speculative_num_draft_tokens": drafts}
        if inputs["attn_dp_size"] > 1:
            flags |= {"dp_size": inputs["attn_dp_size"], "enable_dp_attention": True}
        if inputs["mm_feature_transport"]:
            flags["mm_feature_transport"] = inputs["mm_feature_transport"]
        environment = {"SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK": str(int(inputs["skip_decode_lock"]))}
        axes = [f"engine={record['engine'].removeprefix('sglang-')}", f"tp_size={inputs['tp_size']}"]
        for name, key in (
            ("mem_fraction_static",) * 2,
            ("mamba_full_memory_ratio",) * 2,
            ("max_mamba_cache_size",) * 2,
            ("max_running_requests",) * 2,
            ("max_total_tokens",) * 2,
            ("context_length", "context_len"),
            ("mamba_ssm_dtype",) * 2,
            ("pre_gib",) * 2,
            ("available_gib", "avail_gib"),
        ):
            axes.append(f"{name}={'none' if inputs[key] is None else inputs[key]}")
        axes.append(f"disable_radix_cache={'on' if inputs['disable_radix_cache'] else 'off'}")
        axes.append(f"disable_overlap_schedule={'off' if inputs['overlap'] else 'on'}")
        axes.append(f"enable_linear_replayssm_spec={'on' if inputs['replayssm_spec'] else 'off'}")
        if not inputs["disable_radix_cache"]:
            axes.append(f"mamba_radix_cache_strategy={inputs['strategy']}")
        (row,) = rows(given(flags, gpu="b200:300000", environment=environment), *axes)
        if "refused" in outputs:
            assert row["status"] == "refused"
            refused += 1
        elif row["status"] == "ok":
            assert row["max_total_num_tokens"] == outputs["max_total_num_tokens"], record
            assert row["max_mamba_cache_size"] == outputs["max_mamba_cache_size"], record
            assert row["max_running_requests"] == outputs["max_running_requests"], record
            free = int(inputs["avail_gib"] * GIB) - outputs["alloc_device_total_bytes"]
            assert row["free_bytes"] == free, record
            sized += 1
        else:  # the records fix some combinations that no launch can resolve to
            assert "GiB" not in row["reason"], (record, row["reason"])
    assert sized > 200 and refused > 5, (sized, refused)


AXES = {
    "engine": ("0.5.20", "0.5.21", "0.5.22", "0.5.23"),
    "gpu": ("h200", "b200", "h100"),
    "tp_size": ("1", "2", "4", "8", "3"),
    "pp_size": ("1", "2", "3"),
    "dp_size": ("1", "2", "8"),
    "enable_dp_attention": ("on", "off"),
    "mem_fraction_static": ("0.5", "0.8", "0.9", "none", "1.5"),
    "mamba_full_memory_ratio": ("0.1", "0.9", "2"),
    "max_mamba_cache_size": ("none", "3", "700"),
    "context_length": ("8k", "1m", "2m", "none"),
    "max_total_tokens": ("none", "10k", "1m"),
    "max_running_requests": ("none", "1", "96", "512"),
    "chunked_prefill_size": ("none", "2k", "-1", "100"),
    "speculative_algorithm": ("none", "EAGLE"),
    "mamba_ssm_dtype": ("none", "bfloat16"),
    "disable_radix_cache": ("on", "off"),
    "disaggregation_mode": ("null", "prefill", "decode"),
    "disaggregation_decode_extra_slots": ("none", "40"),
    "attention_backend": ("none", "aiter"),
    "enable_hierarchical_cache": ("on", "off"),
    "hicache_size": ("none", "50"),
    "quantization": ("none", "modelopt_fp4"),
    "checkpoint": ("fp8", "nvfp4", "none"),
    "pre_gib": ("none", "100"),
    "prompt": ("none", "64k"),
    "context": ("1k", "100k"),
    "concurrency": ("none", "40"),
    "prefix_states": ("0", "2"),
}


def expected(start: Given, point: dict[str, Any]) -> dict[str, Any]:
    """A point the long way: everything resolved and booted anew."""
    point = dict(point)
    if "engine" in point:
        start = replace(start, profile=load_profile(point.pop("engine")))
    if "gpu" in point:
        start = replace(start, gpu=plan(gpu=point.pop("gpu")).gpu, gpu_assumed=False)
    memory = MemoryGiven(**{name: point.pop(name) for name in MemoryGiven._fields if name in point})
    prompt, context, concurrency, prefix_states = (
        point.pop(name, None) for name in ("prompt", "context", "concurrency", "prefix_states")
    )
    try:
        made = start.plan(**{name: flag_value(FLAG[name], value) for name, value in point.items()})
        answer = boot(made, memory, prompt)
    except KvplanError:
        return {"status": "refused"}
    if answer.failure is not None:
        return {"status": "refused", "reason": answer.failure.reason}
    deployment, solution = made.deployment, answer.solution
    assert answer.map is not None and answer.headroom is not None and answer.limits is not None
    found = {
        "status": "ok",
        "max_total_num_tokens": solution.tokens,
        "max_mamba_cache_size": solution.state_slots,
        "max_running_requests": solution.running_requests,
        "tokens_bound_by": answer.limits.tokens[0].name,
        "requests_bound_by": answer.limits.requests[0].name,
        "token_bytes": solution.costs.cell_bytes,
        "free_bytes": answer.map.usable,
        "needed_bytes": answer.headroom.needed,
        "headroom": answer.headroom.verdict,
    }
    length = context or min(DEFAULT_CONTEXT, deployment.context_length)
    if prefix_states and deployment.disable_radix_cache:
        return {"status": "refused"}
    if length > deployment.context_length:
        return {**found, "served": 0}
    demand = Demand(contexts([(length, 1)]), concurrency or LARGEST_COUNT, prefix_states or 0)
    return {**found, "served": served(demand, deployment, solution.sizes).requests}


@st.composite
def sweeps(draw: st.DrawFn) -> list[str]:
    names = draw(st.lists(st.sampled_from(sorted(AXES)), min_size=1, max_size=6, unique=True))
    return [f"{name}={','.join(draw(st.lists(st.sampled_from(AXES[name]), min_size=1, max_size=3)))}" for name in names]


@settings(max_examples=80, deadline=None)
@having(sweeps(), st.sampled_from(({}, EXAMPLE_B, {"tp_size": 8, "dp_size": 8, "enable_dp_attention": True})))
def test_every_point_is_what_boot_says(over: list[str], flags: dict[str, object]) -> None:
    start = given(flags, gpu="b200")
    axes = [read_axis(text) for text in over]
    for row in rows(start, *over):
        point = {axis.name: row[axis.column.name] for axis in axes}
        for name, value in expected(start, point).items():
            assert row[name] == value, (name, point)


def test_refused_points_are_rows() -> None:
    found = rows(given({"tp_size": 4}, gpu="b200"), "dp_size=1,3", "context_length=8k,2m,none",
                 "enable_dp_attention=on", memory=MEASURED)  # fmt: skip
    assert [row["status"] for row in found] == ["ok", "refused", "ok", *["refused"] * 3]
    assert "2097152" in found[1]["reason"]
    assert all(row["max_total_num_tokens"] is None and row["reason"] for row in found[3:])


def test_a_base_that_is_refused_without_its_axes_is_fine() -> None:
    found = rows(given({"dp_size": 8, "enable_dp_attention": True}, gpu="b200"), "tp_size=4,8", memory=MEASURED)
    assert [row["status"] for row in found] == ["refused", "ok"]


def test_columns_of_one_name_are_told_apart() -> None:
    (row,) = rows(given(EXAMPLE_B, gpu="b200"), "max_running_requests=5000", memory=MEASURED)
    assert (row["given_max_running_requests"], row["max_running_requests"]) == (5000, 141)
    assert row["requests_bound_by"] == "state slots"


def test_what_stops_one_more_request() -> None:
    start = given({**EXAMPLE_B, "max_running_requests": 5000}, gpu="b200")
    found = rows(start, "context=1k,1m", "context_length=none,512k", memory=MEASURED)
    assert [row["served_bound_by"] for row in found] == ["state slots", "state slots", "tokens", "context length"]
    assert [row["served"] for row in found][:2] == [141, 141] and found[3]["served"] == 0


def test_an_axis_given_twice() -> None:
    with pytest.raises(InputError, match="given twice"):
        Sweep(given(), [read_axis("tp_size=1"), read_axis("tp=2")])
