"""Sweeps of vLLM, and of both engines: against vLLM's own plans, and against what `solve` and `diff` say of each."""

import gzip
import json
from typing import Any

import pytest
from hypothesis import given as having
from hypothesis import settings
from hypothesis import strategies as st
from paths import DATA

from glm_kvplan.answers.sweep.axes import read_axis
from glm_kvplan.answers.sweep.pareto import frontier
from glm_kvplan.answers.sweep.points import Sweep, Workload
from glm_kvplan.contexts import parse_contexts
from glm_kvplan.engines.by_name import engine_named, find_release
from glm_kvplan.engines.planner import given, plan
from glm_kvplan.engines.protocol import Given
from glm_kvplan.engines.sglang.answers.solve_answer import answer_solve as solve_sglang
from glm_kvplan.engines.sweep_columns import COMMON, SERVED_PER_GPU
from glm_kvplan.engines.twin_flags import translated
from glm_kvplan.engines.vllm.answers.solve_answer import answer_solve as solve_vllm
from glm_kvplan.errors import InputError
from glm_kvplan.memory.given import MemoryGiven

BOTH = "engine=sglang-0.5.23,vllm-0.33.0"
MTP3 = {"method": "mtp", "num_speculative_tokens": 3}
CHAIN3 = {
    "speculative_algorithm": "NEXTN",
    "speculative_num_steps": 3,
    "speculative_eagle_topk": 1,
    "speculative_num_draft_tokens": 4,
}


def rows(
    start: Given, *over: str, memory: MemoryGiven | None = None, workload: Workload | None = None
) -> list[dict[str, Any]]:
    sweep = Sweep(start, [read_axis(text, start.profile.engine) for text in over], memory, workload)
    names = [column.name for column in sweep.columns]
    return [dict(zip(names, row, strict=True)) for row in sweep]


def vllm(release: str = "0.33.0", gpu: str = "h200", **flags: object) -> Given:
    return given({"tensor_parallel_size": 4, **flags}, gpu=gpu, engine=f"vllm-{release}")


def test_vllms_own_plans() -> None:
    """Every recorded plan as a row: blocks, their bytes, a request's, the printed line; its refusals are rows too.

    The records plan whatever comes later: a start also wants a block for each request that its graphs hold.
    """
    names = {"tp": "tensor_parallel_size", "kv": "kv_cache_dtype", "prefix": "enable_prefix_caching"}
    seen = refused = late = 0
    for line in gzip.decompress((DATA / "vllm.jsonl.gz").read_bytes()).splitlines():
        record = json.loads(line)
        inputs = dict(record["input"])
        if record["kind"] == "public boot log" or "pipeline_parallel_size" in inputs:
            continue
        drafts, memory = inputs.pop("mtp"), inputs.pop("available")
        flags: dict[str, object] = {names.get(name, name): value for name, value in inputs.items() if name != "name"}
        flags["kv_cache_memory_bytes"] = memory
        flags["gpu_memory_utilization"] = 0.5  # which moves no block then, and is free on any card
        if drafts:
            flags["speculative_config"] = {"method": "mtp", "num_speculative_tokens": drafts}
        start = given(flags, gpu=record["gpu"], engine=f"vllm-{record['release']}")
        said = record.get("plan", {"max_model_len": 1})
        (row,) = rows(start, f"context={said['max_model_len']}")
        if "refused" in record:
            assert row["status"] == "refused", record
            refused += 1
        elif row["status"] == "refused":
            blocks, requests = said["num_blocks"], record["resolved"]["max_num_seqs"]
            assert requests > blocks and f"is above the {blocks} blocks" in row["reason"], (row["reason"], inputs)
            late += 1
        else:
            assert row["num_blocks"] == said["num_blocks"]
            assert row["block_bytes"] == said["bytes_per_block"]
            assert row["block_size"] == record["resolved"]["block_size"]
            assert row["request_blocks"] == said["blocks_per_request"]
            assert row["printed_tokens"] == said["kv_cache_size_tokens"]
            assert row["printed_concurrency"] == said["max_concurrency"]
            assert row["request_bytes"] == said["blocks_per_request"] * said["bytes_per_block"]
            assert row["cache_bytes"] == said["num_blocks"] * said["bytes_per_block"] * row["gpus"]
            seen += 1
    assert seen >= 700 and refused == 85 and seen + late + refused == 944


@pytest.mark.parametrize("tp", [4, 8])
@pytest.mark.parametrize("context", [8192, 131_072, 1_048_576])
@pytest.mark.parametrize("drafts", [False, True])
def test_both_engines_are_what_each_says_alone(tp: int, context: int, drafts: bool) -> None:
    found = rows(given({"tp_size": tp, **(CHAIN3 if drafts else {})}, gpu="h200"), BOTH, f"context={context}")
    alone = {
        "sglang": plan({"tp_size": tp, **(CHAIN3 if drafts else {})}, gpu="h200", engine="sglang-0.5.23"),
        "vllm": plan(
            {"tensor_parallel_size": tp, **({"speculative_config": MTP3} if drafts else {})},
            gpu="h200",
            engine="vllm-0.33.0",
        ),
    }
    assert [row["engine"].partition("-")[0] for row in found] == list(alone)
    for row, made in zip(found, alone.values(), strict=True):
        start = made.started(MemoryGiven(), context)
        assert row["served"] == start.measure("requests_at_context")
        for name in ("gpus", "longest_context", "cache_bytes", "token_bytes", "request_bytes", "fixed_bytes"):
            assert row[name] == start.measure(name), (row["engine"], name)
        assert row["served_per_gpu"] == row["served"] / tp
    solved = solve_vllm(alone["vllm"], MemoryGiven(), mix=parse_contexts(str(context)))
    mixed = next(each for each in solved.served if each.longest == context)
    assert (found[1]["served"], found[1]["request_bytes"]) == (mixed.requests, mixed.nbytes)
    assert found[1]["fixed_bytes"] == solved.request.fixed.nbytes


def test_one_request_by_hand() -> None:
    """A state of TP4 is 147,619,840 / 4 bytes and a request has 5 of them and a row of 4,216,848; a vLLM block of TP4
    is 13,415,424 bytes, a request has 13 before its first token, and one of 131,072 tokens 114 more.
    """
    sglang, of_vllm = rows(given({"tp_size": 4}, gpu="h200"), BOTH, "context=128k")
    assert sglang["fixed_bytes"] == 5 * 147_619_840 // 4 + 4_216_848
    assert sglang["request_bytes"] == sglang["fixed_bytes"] + 131_072 * 11 * (1024 + 33)  # bf16 rows, pooled keys
    assert of_vllm["fixed_bytes"] == 13 * 13_415_424
    assert of_vllm["request_bytes"] == (13 + 114) * 13_415_424


def test_a_launch_of_vllm_is_swept_over_sglang_too() -> None:
    """Flags of either side, and an axis in the words of the launch."""
    start = vllm(speculative_config=MTP3, max_num_seqs=96, enable_prefix_caching=False)
    found = rows(start, "engine=vllm-0.33.0,sglang-0.5.23", "max_model_len=64k,256k")
    other = given(
        {"tp_size": 4, "max_running_requests": 96, "disable_radix_cache": True, **CHAIN3}, gpu="h200", engine="0.5.23"
    )
    expected = rows(other, "context_length=64k,256k")
    assert [row["engine"] for row in found] == ["vllm-0.33.0"] * 2 + ["sglang-0.5.23"] * 2
    for row, alone in zip(found[2:], expected, strict=True):
        assert [row[column.name] for column in COMMON] == [alone[column.name] for column in COMMON]
    expected = rows(start, "max_model_len=64k,256k")
    for row, alone in zip(found[:2], expected, strict=True):
        assert [row[column.name] for column in COMMON] == [alone[column.name] for column in COMMON]


def test_only_the_other_engine() -> None:
    """kvplan's options are SGLang's; a sweep over vLLM's releases alone has all of vLLM's columns."""
    found = rows(given({"tp_size": 4}, gpu="h200"), "engine=vllm-0.31.0,vllm-0.33.0")
    assert [row["num_blocks"] for row in found] == [
        solve_vllm(vllm(release).plan(), MemoryGiven()).num_blocks for release in ("0.31.0", "0.33.0")
    ]


_TWINS = st.fixed_dictionaries(
    {},
    optional={
        "tp_size": st.sampled_from((1, 2, 4, 8)),
        "context_length": st.integers(1024, 1 << 20),
        "max_running_requests": st.integers(1, 2000),
        "kv_cache_dtype": st.sampled_from(("auto", "bfloat16", "fp8_e4m3")),
        "mamba_ssm_dtype": st.sampled_from(("float32", "bfloat16")),
        "disable_radix_cache": st.just(True),
    },
)


@settings(max_examples=60, deadline=None)
@having(_TWINS, st.integers(0, 6))
def test_twins_there_and_back(flags: dict[str, object], steps: int) -> None:
    drafts = {**CHAIN3, "speculative_num_steps": steps, "speculative_num_draft_tokens": steps + 1} if steps else {}
    start = given({**flags, **drafts}, gpu="h200", engine="sglang-0.5.23")
    there = translated(start, find_release("vllm-0.33.0"))
    assert there.profile.engine is engine_named("vllm")
    assert translated(there, start.profile).flags == start.flags


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        ({"mem_fraction_static": 0.8}, "--mem-fraction-static of SGLang has no exact twin in vLLM (nearest: --gpu-mem"),
        ({"dp_size": 8, "enable_dp_attention": True}, "--dp-size of SGLang has no exact twin"),
        ({"chunked_prefill_size": 4096}, "--chunked-prefill-size of SGLang has no exact twin"),
        ({"speculative_algorithm": "EAGLE"}, "say --speculative-num-steps N"),
        ({**CHAIN3, "speculative_num_draft_tokens": 8}, "--speculative-num-draft-tokens 4"),
        ({"speculative_algorithm": "DFLASH"}, "has no exact twin in vLLM; EAGLE and NEXTN have"),
        ({"kv_cache_dtype": "mxfp8"}, "on vLLM: --kv-cache-dtype"),
    ],
)
def test_what_has_no_twin_is_one_line(flags: dict[str, object], told: str) -> None:
    start = given({"tp_size": 8, **flags}, gpu="h200")
    with pytest.raises(InputError) as error:
        Sweep(start, [read_axis(BOTH)])
    assert told in str(error.value) and "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (
            {"gpu_memory_utilization": 0.9},
            "--gpu-memory-utilization of vLLM has no exact twin in SGLang (near",
        ),
        ({"data_parallel_size": 2}, "--data-parallel-size of vLLM has no exact twin"),
        ({"speculative_config": {"method": "ngram", "num_speculative_tokens": 3}}, "only as"),
        ({"max_model_len": -1}, "on SGLang: --context-length"),
    ],
)
def test_what_vllm_says_alone_is_one_line(flags: dict[str, object], told: str) -> None:
    with pytest.raises(InputError) as error:
        Sweep(vllm(**flags), [read_axis(BOTH, engine_named("vllm"))])
    assert told in str(error.value) and "\n" not in str(error.value)


def test_readings_and_switches_of_one_engine() -> None:
    axis = read_axis(BOTH)
    with pytest.raises(InputError, match="--available-gib and --calibrate are readings of one engine"):
        Sweep(given({"tp_size": 4}, gpu="h200"), [axis], MemoryGiven(available_gib=80.0))
    with pytest.raises(InputError, match="--available-gib"):
        Sweep(given({"tp_size": 4}, gpu="h200"), [axis, read_axis("available_gib=80")])
    with pytest.raises(InputError, match="SGLANG_MAMBA_CONV_DTYPE of SGLang has no exact twin"):
        Sweep(given({"tp_size": 4}, gpu="h200", environment={"SGLANG_MAMBA_CONV_DTYPE": "float32"}), [axis])
    with pytest.raises(InputError, match="--mem-fraction-static of SGLang has no exact twin"):
        Sweep(given({"tp_size": 4}, gpu="h200"), [axis, read_axis("mem_fraction_static=0.8")])


def test_an_axis_is_in_the_words_of_the_engine() -> None:
    with pytest.raises(InputError, match="no such axis; vLLM has --tensor-parallel-size"):
        read_axis("tp_size=4", engine_named("vllm"))
    with pytest.raises(InputError, match="no such axis; SGLang has --max-running-requests"):
        read_axis("max_num_seqs=4")
    with pytest.raises(InputError, match="any flag of vLLM"):
        read_axis("mamba_full_memory_ratio=4", engine_named("vllm"))


def test_a_release_is_of_the_engine_that_has_it() -> None:
    """A bare one too, whatever is launched; an engine alone is its assumed release, which is said."""
    assert list(read_axis("engine=0.32.0,0.5.21", engine_named("vllm"))) == ["0.32.0", "0.5.21"]
    assert list(read_axis("engine=sglang,vllm")) == [
        f"{name}-{engine_named(name).load(engine_named(name).assumed).base_release}" for name in ("sglang", "vllm")
    ]
    found = rows(vllm(), "engine=0.33.0,0.5.23")
    assert [row["cache_bytes"] for row in found] == [
        row["cache_bytes"] for row in rows(given({"tp_size": 4}, gpu="h200"), "engine=vllm-0.33.0,sglang-0.5.23")
    ]
    with pytest.raises(InputError, match=r"vLLM 0\.29\.0 does not know this model"):
        read_axis("engine=0.29.0", engine_named("vllm"))


def test_a_value_without_a_twin_is_a_refused_row() -> None:
    found = rows(given({"tp_size": 4}, gpu="h200"), BOTH, "kv_cache_dtype=fp8_e4m3,nvfp4")
    assert [row["status"] for row in found][:1] == ["ok"] and found[2]["status"] == "ok"
    assert found[1]["status"] == found[3]["status"] == "refused"


def test_ranked_by_what_a_gpu_serves() -> None:
    """Data parallelism without DP attention adds GPUs and serves no more on each: not better by itself."""
    start = given({"tp_size": 8}, gpu="h200")
    plain = rows(start, "dp_size=1,2,8")
    assert [row["gpus"] for row in plain] == [8, 16, 64]
    assert [row["served"] for row in plain] == [plain[0]["served"] * times for times in (1, 2, 8)]
    assert len({row[SERVED_PER_GPU] for row in plain}) == 1
    attention = rows(given({"tp_size": 8, "enable_dp_attention": True}, gpu="h200"), "dp_size=2,8")
    assert [row["gpus"] for row in attention] == [8, 8]
    assert plain[0][SERVED_PER_GPU] < attention[0][SERVED_PER_GPU] < attention[1][SERVED_PER_GPU]


def test_caches_of_pipeline_stages_are_added_up() -> None:
    """Every rank of both stages, as `solve` of each stage has them."""
    from glm_kvplan.engines.sglang.components import allocated_bytes
    from glm_kvplan.engines.sglang.rank import ranks

    (row,) = rows(given({"tp_size": 4}, gpu="h200", engine="0.5.22"), "pp_size=2")
    made = plan({"tp_size": 4, "pp_size": 2}, gpu="h200", engine="0.5.22")
    from glm_kvplan.engines.sglang.sizing.start import boot

    sizes = boot(made, MemoryGiven()).solution.sizes
    assert row["cache_bytes"] == 4 * sum(allocated_bytes(rank, sizes) for rank in ranks(made))


@pytest.mark.parametrize(
    ("workload", "served"),
    [
        (Workload(parse_contexts("8k"), 40), (40, "concurrency")),
        (Workload(parse_contexts("8k")), (64, "--max-num-seqs")),
        (Workload(parse_contexts("1m")), (0, "--max-model-len")),
    ],
)
def test_what_stops_one_more_request_of_vllm(workload: Workload, served: tuple[int, str]) -> None:
    (row,) = rows(vllm(max_model_len=131072), "max_num_seqs=64", workload=workload)
    assert (row["served"], row["served_bound_by"]) == served
    assert row["given_max_num_seqs"] == row["max_num_seqs"] == 64


@pytest.mark.parametrize("confidence", [0.99, 0.0])
def test_a_mix_is_what_solve_says_of_it(confidence: float) -> None:
    mix = parse_contexts("0.8:8k,0.2:128k")._replace(confidence=confidence)
    sglang, of_vllm = rows(given({"tp_size": 4}, gpu="h200"), BOTH, workload=Workload(mix))
    alone = solve_sglang(plan({"tp_size": 4}, gpu="h200", engine="0.5.23"), MemoryGiven(), mix=mix)
    assert alone.served is not None and sglang["served"] == alone.served.requests
    solved = solve_vllm(vllm().plan(), MemoryGiven(), mix=mix)
    assert of_vllm["served"] == solved.served[-1].requests
    assert of_vllm["request_bytes"] == solved.served[-1].nbytes  # of the longest


def test_the_frontier_of_both_engines_is_the_best_of_each() -> None:
    start = given({"tp_size": 8}, gpu="h200")

    def front(*over: str) -> dict[int, int]:
        sweep = Sweep(start, [read_axis(text) for text in (*over, "context=1k..1m:x2")])
        names = [column.name for column in sweep.columns]
        at, served = names.index("context"), names.index("served")
        return {row[at]: row[served] for row in frontier(sweep, sweep)}

    both, one, other = front(BOTH), front("engine=sglang-0.5.23"), front("engine=vllm-0.33.0")
    assert both and all(served >= max(one.get(at, 0), other.get(at, 0)) for at, served in both.items())
    assert all(served in (one.get(at), other.get(at)) for at, served in both.items())


def test_prefix_states_are_sglangs() -> None:
    (row,) = rows(vllm(), "prefix_states=2")
    assert row["status"] == "refused" and "prefix_states are not planned" in row["reason"]


def test_a_start_that_fails_is_a_row() -> None:
    found = rows(vllm(), "available_gib=4,45.07")
    assert [row["status"] for row in found] == ["refused", "ok"]
    assert "one request of 1,048,576 tokens needs 924 blocks" in found[0]["reason"]
    assert (found[1]["num_blocks"], found[1]["certainty"]) == (3607, "derived")
