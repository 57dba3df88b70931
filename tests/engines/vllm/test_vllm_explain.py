"""`kvplan explain` and `resolve` of a vLLM launch: vLLM's own numbers in every topic, a reason for every flag."""

import json

import pytest
from running import run
from vllm_oracle import flags_of, records

import glm_kvplan as kv
from glm_kvplan.engines.explanation import Explanation
from glm_kvplan.engines.vllm.explain.ground import Ground
from glm_kvplan.engines.vllm.explain.topics import TITLES, TOPICS
from glm_kvplan.engines.vllm.flags import FLAGS
from glm_kvplan.workload import Workload

MTP3 = {"method": "mtp", "num_speculative_tokens": 3}


def told(
    topic: str, release: str = "0.33.0", gpu: str = "h200", workload: Workload | None = None, **flags: object
) -> Explanation:
    plan = kv.plan({"tensor_parallel_size": 4, **flags}, engine=f"vllm-{release}", gpu=gpu)
    return TOPICS[topic][1](Ground(plan, workload or Workload(min(131072, plan.context_length), 1)))


def figures(found: Explanation, reading: str = "right") -> list[int]:
    return [figure.value for figure in found.figures if figure.reading == reading]


@pytest.mark.parametrize(
    ("release", "gpu", "tensor", "held", "tokens"),
    [("0.30.0", "h200", 4, 16, 18_432), ("0.33.0", "h200", 4, 19, 21_888), ("0.33.0", "gb10", 2, 19, 87_552)],
)
def test_a_request_before_its_first_token(release: str, gpu: str, tensor: int, held: int, tokens: int) -> None:
    found = told("request", release, gpu, tensor_parallel_size=tensor, speculative_config=MTP3)
    assert f"holds {held} blocks" in found.lines[0] and f"what {tokens:,} tokens would take" in found.lines[0]


def test_requests_and_boot_lines_of_vllms_own_plans() -> None:
    for record in records()[::23]:
        if "refused" in record or "pipeline_parallel_size" in record["input"]:
            continue
        plan, said = kv.plan(flags_of(record), engine=f"vllm-{record['release']}", gpu=record["gpu"]), record["plan"]
        ground = Ground(plan, Workload(said["max_model_len"], 1))
        request = TOPICS["request"][1](ground)
        assert figures(request) == [said["blocks_per_request"] * said["bytes_per_block"]]
        assert eval(request.numbers.replace("ceil", "__import__('math').ceil")) == figures(request)[0]
        if not plan.deployment.fits_max_model_len:
            boot = TOPICS["boot-line"][1](ground)
            assert f"one request of {said['max_model_len']:,} tokens" in boot.lines[1].replace("the 1 of", "the")


def test_the_boot_line_of_a_public_boot() -> None:
    """3,311 blocks print 3,338,303 tokens (doc id 58946482992)."""
    found = told("boot-line", "0.30.0", workload=Workload(131072, 1), max_model_len=131072, speculative_config=MTP3)
    assert "130 of one request of 131,072 tokens" in found.lines[1]
    assert figures(found, "wrong") == [131 * 131072 // 130]


@pytest.mark.parametrize(("tokens", "printed"), [(0, "8.68%"), (2, "6.27%"), (3, "5.11%"), (5, "2.86%")])
def test_the_padding_that_public_logs_print(tokens: int, printed: str) -> None:
    flags = {"speculative_config": {"method": "mtp", "num_speculative_tokens": tokens}} if tokens else {}
    assert printed in told("padding", "0.30.0", **flags).lines[0]


def test_block_sizes_of_public_logs() -> None:
    assert figures(told("block")) == [1152]
    assert figures(told("block", tensor_parallel_size=8)) == [640]
    assert figures(told("block", "0.30.0", tensor_parallel_size=2, speculative_config=MTP3)) == [2304]


def test_states_of_a_request() -> None:
    """MambaSpec.max_memory_usage_bytes: 2 + k with prefix caching, one more from 0.32.0 on; 1 + k without."""
    assert (figures(told("prefix-caching", "0.30.0")), figures(told("prefix-caching"))) == ([2], [3])
    off = told("prefix-caching", enable_prefix_caching=False)
    assert (figures(off), figures(off, "wrong")) == ([1], [3])
    for release in ("0.30.0", "0.33.0"):
        found = told("prefix-caching", release, speculative_config=MTP3)
        assert eval(found.numbers) == figures(found)[0]
    assert figures(told("draft", "0.30.0", speculative_config=MTP3)) == [16]


def test_fp8_where_it_can_be_and_where_not() -> None:
    assert len(figures(told("dtype"))) == 2
    assert any("is refused here" in line for line in told("dtype", gpu="gb10").lines)


@pytest.mark.parametrize("gpu", ["h200", "b200", "gb10"])
@pytest.mark.parametrize("topic", TITLES)
def test_every_topic_is_told_for_any_deployment(topic: str, gpu: str) -> None:
    share = {"gpu_memory_utilization": 0.85} if gpu == "gb10" else {}  # vLLM's own 0.92 is not free there
    for flags in ({}, {"max_model_len": 1}, {"tensor_parallel_size": 1}, {"kv_cache_memory_bytes": 1 << 30}):
        found = told(topic, gpu=gpu, **share, **flags)
        assert found.lines and found.source and "at 0.33.0" in found.source
        assert {figure.reading for figure in found.figures} == {"right", "wrong"}
        assert {figure.unit for figure in found.figures} <= {"B", "tokens", "blocks", "states"}


def test_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "explain", "--engine", "vllm")
    assert code == 0 and all(name in out for name in TITLES)
    code, out, err = run(capsys, "explain", "pading", "--engine", "vllm")
    assert (code, out) == (2, "") and "did you mean padding?" in err
    code, out, _ = run(capsys, "explain", "request", "--json", "--engine", "vllm-0.30.0", "--tensor-parallel-size", "4")
    assert code == 0 and json.loads(out)["topic"] == "request"


def test_every_flag_is_resolved_with_a_reason(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(
        capsys, "resolve", "--json", "--", "vllm", "serve", "zai-org/GLM-5.3-Flash", "-tp", "4", "-ep",
        "-sc", '{"method":"mtp","num_speculative_tokens":3}',
    )  # fmt: skip
    choices = {choice["flag"]: choice for choice in json.loads(out)["choices"]}
    assert code == 0
    assert list(choices) == [row.name for row in FLAGS if row.exists_in("0.33.0")]
    assert all(choice["reason"] for choice in choices.values())
    given = {name for name, choice in choices.items() if choice["given"]}
    assert given == {"tensor_parallel_size", "enable_expert_parallel", "speculative_config"}
    assert choices["speculative_config"]["value"] == MTP3
    assert "one more state a token" in choices["speculative_config"]["reason"]
