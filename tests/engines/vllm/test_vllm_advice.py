"""`kvplan advise` and `check` of vLLM: figures of public boots, and changes that hold when they are typed."""

import json
from pathlib import Path

import pytest
import yaml
from running import run

import glm_kvplan as kv
from glm_kvplan.answers.check.checking import check_file
from glm_kvplan.contexts import parse_contexts
from glm_kvplan.engines.expectations import Expectations, Held
from glm_kvplan.engines.vllm.answers.advise_answer import AdviseAnswer, answer_advise
from glm_kvplan.engines.vllm.plan import Plan
from glm_kvplan.engines.vllm.served_requests import served
from glm_kvplan.engines.vllm.starting import begin
from glm_kvplan.errors import InputError
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.workload import Demand

MTP3 = {"method": "mtp", "num_speculative_tokens": 3}
MEASURED = MemoryGiven(available_gib=45.07)
SERVE = ("--", "vllm", "serve", "zai-org/GLM-5.3-Flash", "-tp", "4")


def plan(release: str = "0.30.0", gpu: str = "h200", **flags: object) -> Plan:
    found: Plan = kv.plan({"tensor_parallel_size": 4, **flags}, engine=f"vllm-{release}", gpu=gpu)
    return found


def boot(**expect: object) -> Held:
    """The public boot of TP4 with MTP3 at 131,072 tokens: 3,311 blocks, 130 a request (doc id 58946482992)."""
    made = plan(max_model_len=131072, speculative_config=MTP3)
    return made.hold(MEASURED, Expectations(**expect))  # type: ignore[arg-type]


def advise(made: Plan, lengths: str, requests: int, given: MemoryGiven = MEASURED, **more: object) -> AdviseAnswer:
    return answer_advise(made, Demand(parse_contexts(lengths), requests), given, **more)  # type: ignore[arg-type]


def test_a_public_boot_is_judged() -> None:
    held = boot(min_context=131072, min_concurrency=25, max_running_requests=100, min_total_tokens=1)
    found = {each.name: each.found for each in held.judgements}
    assert found == {
        "boots": "starts",
        "min_context": 131072,
        "min_concurrency": 3310 // 130,
        "min_total_tokens": 3310 * 1152,
        "max_running_requests": 3310 // 17,
    }
    assert all(each.holds for each in held.judgements)
    (short,) = [each for each in boot(min_context=131072, min_concurrency=26).judgements if not each.holds]
    assert (short.name, short.limit) == ("min_concurrency", "blocks")
    assert "3,311 blocks a GPU" in short.why and "130 a request of 131,072 tokens" in short.why


@pytest.mark.parametrize(
    "expect",
    [
        {"min_context": 131072, "min_concurrency": 30},
        {"min_context": 200000},
        {"max_running_requests": 220},
        {"min_total_tokens": 5_000_000},
    ],
)
def test_every_change_holds_when_it_is_typed(expect: dict[str, int]) -> None:
    made = plan(max_model_len=131072, max_num_seqs=256, speculative_config=MTP3)
    held = made.hold(MEASURED, Expectations(**expect))
    (short,) = [each for each in held.judgements if not each.holds]
    assert short.changes
    for change in short.changes:
        typed = {name: value for name, value in {**made.flags, **change.flags}.items() if value is not None}
        again: Plan = kv.plan(typed, engine="vllm-0.30.0", gpu="h200")
        given = MemoryGiven() if change.estimated else MEASURED
        if "gpu_memory_utilization" in change.flags:
            continue  # a log of that share prints another memory
        names = [each.name for each in again.hold(given, Expectations(**expect)).judgements if not each.holds]
        assert tuple(names) == change.then_short, change.text


def test_a_start_that_fails_is_judged_with_what_helps() -> None:
    made = plan("0.33.0", max_model_len=32768)
    held = made.hold(MemoryGiven(available_gib=8.0), Expectations(min_context=32768))
    boots, context = held.judgements
    assert (boots.holds, boots.limit, context.found) == (False, "requests above blocks", "nothing")
    assert any("--max-num-seqs" in change.text for change in boots.changes)


def test_an_estimate_says_what_its_low_end_does() -> None:
    made = plan(max_model_len=131072)
    begun = begin(made, MemoryGiven())
    middle = served(begun.start, parse_contexts("128k")).requests
    held = made.hold(MemoryGiven(), Expectations(min_context=131072, min_concurrency=middle))
    assert all(each.holds for each in held.judgements)
    assert [remark.name for remark in held.remarks] == ["estimated_memory"]


def test_what_is_not_planned_is_said() -> None:
    with pytest.raises(InputError, match="host memory is not planned"):
        boot(host_memory="fits")
    with pytest.raises(InputError, match="--kv-cache-memory-bytes"):
        plan(kv_cache_memory_bytes=6 << 30, max_num_seqs=8, max_model_len=32768).hold(
            MemoryGiven(), Expectations(headroom=1.0)
        )
    assert boot(headroom="fits").judgements[-1].holds
    short = boot(headroom=20.0).judgements[-1]
    assert (short.name, short.holds) == ("headroom", False)


def test_check_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "plan.kvplan.yaml"
    document = {
        "gpu": "H200",
        "engine": "vllm-0.30.0",
        "flags": {"tensor_parallel_size": 4, "max_model_len": 131072, "speculative_config": MTP3},
        "memory": {"available_gib": 45.07},
        "expect": {"min_context": 131072, "min_concurrency": 25},
    }
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    assert check_file(str(path)).verdict == "holds"
    for form in ("text", "json", "github", "junit", "sarif", "md"):
        assert run(capsys, "check", str(path), "--format", form)[0] == 0
    document["expect"] = {"min_context": 131072, "min_concurrency": 26}
    path.write_text(yaml.safe_dump(document), encoding="utf-8")
    code, out, _ = run(capsys, "check", str(path))
    assert code == 1 and "26 requests" in out and "25 requests" in out


def test_what_serves_as_it_is_needs_no_change() -> None:
    found = advise(plan(max_model_len=131072, speculative_config=MTP3), "128k", 25)
    assert (found.holds, found.flags, found.options) == (True, {}, ())
    assert (found.now.requests, found.now.limit) == (25, "blocks")


@pytest.mark.parametrize("release", ["0.30.0", "0.33.0"])
@pytest.mark.parametrize(("lengths", "requests"), [("128k", 30), ("0.8:8k,0.2:128k", 90), ("8k", 190)])
def test_every_option_serves_when_it_is_typed(release: str, lengths: str, requests: int) -> None:
    made = plan(release, max_model_len=131072, speculative_config=MTP3)
    found = advise(made, lengths, requests, MEASURED, tries={"mamba_ssm_cache_dtype": ["bfloat16"]})
    assert found.now.requests < requests and found.options
    for option in found.options:
        typed = {name: value for name, value in {**made.flags, **option.flags}.items() if value is not None}
        again: Plan = kv.plan(typed, engine=f"vllm-{release}", gpu="h200")
        begun = begin(again, MemoryGiven() if option.estimated else MEASURED, made)
        assert served(begun.start, parse_contexts(lengths)).requests == option.requests >= requests, option.text
        assert option.gpus == again.gpus
    assert found.flags == found.options[0].flags and found.holds
    assert [option.gpus for option in found.options] == sorted(option.gpus for option in found.options)


def test_the_fewest_gpus_that_serve_come_first() -> None:
    """64 requests of 131,072 tokens: engines side by side take 8 GPUs, tensor parallelism 16."""
    found = advise(plan("0.33.0"), "131072", 64, MemoryGiven())
    assert [(option.text, option.gpus) for option in found.options] == [
        ("--data-parallel-size 2", 8),
        ("--tensor-parallel-size 16", 16),
    ]
    assert found.flags == {"data_parallel_size": 2}


@pytest.mark.parametrize("requests", [56, 60])
def test_what_is_sure_within_the_estimate_is_named(requests: int) -> None:
    """The middle of the estimate serves them at TP 8, its low end not; with the flags that are named that does, too."""
    made: Plan = kv.plan({"tensor_parallel_size": 8}, engine="vllm-0.33.0", gpu="h200")
    found = advise(made, "128k", requests, MemoryGiven())
    assert found.holds
    (said,) = (str(one) for one in found.warnings if "low end" in str(one))
    changed = said.partition("and with ")[2].removesuffix(" all").split()
    flags = {**made.flags, **found.flags, changed[0][2:].replace("-", "_"): changed[1]}
    launch = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in flags.items())
    begun = begin(
        kv.plan(launch=f"vllm serve zai-org/GLM-5.3-Flash {launch}", engine="vllm-0.33.0", gpu="h200"), MemoryGiven()
    )
    assert served(begun.low, parse_contexts("128k")).requests >= requests


def test_a_bfloat16_state_is_advised_where_it_is_asked_for() -> None:
    made = plan("0.33.0", max_model_len=131072, speculative_config=MTP3)
    texts = [option.text for option in advise(made, "8k", 130, MEASURED).options]
    assert not any("mamba" in text for text in texts)
    tries = {"mamba_ssm_cache_dtype": ["bfloat16"]}
    texts = [option.text for option in advise(made, "8k", 130, MEASURED, tries=tries).options]
    assert "--mamba-ssm-cache-dtype bfloat16" in texts


def test_the_limits_are_raised_to_what_is_asked() -> None:
    found = advise(plan("0.33.0", max_model_len=131072, max_num_seqs=64), "8k", 100, MEASURED)
    assert found.now == (64, 64, 64, "--max-num-seqs", None, False)
    assert found.flags == {"max_num_seqs": 100}
    longer = advise(plan("0.33.0", max_model_len=32768), "64k", 4, MEASURED)
    assert longer.now.limit == "--max-model-len" and "max_model_len" in longer.flags


def test_advise_command(capsys: pytest.CaptureFixture[str]) -> None:
    words = ("advise", "--gpu", "h200", "--available-gib", "45.07", "--context", "128k", "--concurrency", "30", *SERVE)
    code, out, _ = run(capsys, *words, "--max-model-len", "131072", "-sc", json.dumps(MTP3))
    assert code == 0 and "flags to change; up to 42 of them fit then" in out and "--kv-cache-dtype fp8" in out
    code, out, _ = run(capsys, *words[:-6], "--concurrency", "90000", "--json", *SERVE)
    document = json.loads(out)
    assert (code, document["holds"], document["options"]) == (1, False, [])
    code, out, _ = run(capsys, "advise", "--gpu", "h200", "--available-gib", "4", "--context", "8k", *SERVE)
    assert code == 1 and "No: the engine refuses to start" in out and "flags to change, with 8 GPUs; up to" in out
    code, out, err = run(capsys, *words[:-6], "--prefix-states", "3", *SERVE)
    assert (code, out) == (2, "") and "leave it out" in err
    code, out, err = run(capsys, *words[:-6], "--try", "mamba-ssm-cache-dtype=float16", *SERVE)
    assert (code, out) == (2, "") and "float32 or bfloat16" in err


def test_two_knobs_serve_where_none_does_alone() -> None:
    """None of the four changes that stand first serves 51 of these; rows of fp8 change numbers in either place."""
    found = advise(plan("0.33.0"), "128k", 51)
    near = [option for option in found.options if option.gpus == 4]
    assert near and all(len(option.flags) == 2 and option.accuracy for option in near)
    firsts = ["kda_prefill_backend", "enable_prefix_caching", "kv_cache_dtype"]
    assert [next(iter(option.flags)) for option in near] == firsts
    assert {option.accuracy for option in found.options if option.gpus > 4} == {False}
    alone = advise(plan("0.33.0"), "128k", 30).options
    assert all(len(option.flags) == 1 for option in alone)


def test_engines_share_what_is_asked() -> None:
    made = plan("0.33.0", data_parallel_size=2, max_num_seqs=8)
    found = advise(made, "8k", 21)
    assert found.flags == {"max_num_seqs": 11} and found.holds
    assert found.blocks.floor_blocks == 11 * made.blocks.needed(8192) + 1


def test_a_float32_state_may_be_tried_and_changes_nothing() -> None:
    tries = {"mamba_ssm_cache_dtype": ["float32"]}
    assert advise(plan("0.33.0"), "8k", 130, MEASURED, tries=tries) == advise(plan("0.33.0"), "8k", 130)


@pytest.mark.parametrize(
    ("requests", "surer"), [(30, "--gpu-memory-utilization 0.94"), (31, "--gpu-memory-utilization 0.95")]
)
def test_what_is_sure_is_the_least_change_that_leaves_the_model_be(requests: int, surer: str) -> None:
    """The middle of the estimate serves them with a step of memory, its low end with two."""
    found = advise(plan("0.33.0"), "128k", requests, MemoryGiven())
    said = [str(one) for one in found.warnings if "low end" in str(one)]
    assert said == [f"at the low end of the memory's estimate it serves {requests - 1}, and with {surer} all"]
    exact = advise(plan("0.33.0"), "128k", 28, MemoryGiven())
    assert (exact.now.low, exact.now.requests) == (28, 29)
    assert not any("low end" in str(one) for one in exact.warnings)
    fixed = plan("0.33.0", gpu_memory_utilization=0.97, enable_prefix_caching=False, kv_cache_dtype="fp8")
    ends = begin(fixed, MemoryGiven())
    low, most = (served(one, parse_contexts("128k")).requests for one in (ends.low, ends.start))
    said = [str(one) for one in advise(fixed, "128k", most, MemoryGiven()).warnings if "low end" in str(one)]
    assert (
        said == [f"at the low end of the memory's estimate it serves {low}"] and low < most
    )  # nothing surer on these GPUs


def test_notes_of_the_weights_stand_where_these_are_estimated() -> None:
    begun = begin(plan("0.33.0"), MemoryGiven())
    assert begun.weights is not None
    notes = set(map(str, begun.weights.notes))
    assert notes <= set(map(str, advise(plan("0.33.0"), "128k", 20, MemoryGiven()).warnings))
    assert not advise(plan("0.33.0"), "128k", 20).warnings
