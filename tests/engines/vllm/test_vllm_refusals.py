"""What vLLM does not start, and what is not planned: refused in one line that says where and what to do."""

import pytest
from vllm_oracle import blocks, resolved

import glm_kvplan as kv
from glm_kvplan.engines.vllm.profile import load_profile, releases
from glm_kvplan.engines.vllm.start import start
from glm_kvplan.engines.vllm.starting import begin
from glm_kvplan.errors import InputError, RefusedError
from glm_kvplan.memory.given import MemoryGiven
from glm_kvplan.units import GIB

MTP = {"method": "mtp", "num_speculative_tokens": 3}


@pytest.mark.parametrize(
    ("flags", "gpu", "said"),
    [
        ({"pipeline_parallel_size": 2}, "h200", "--pipeline-parallel-size 2: the model class"),
        ({"tensor_parallel_size": 3}, "h200", "--tensor-parallel-size 3 does not divide the 64 attention heads"),
        ({}, "a100", "no sparse MLA backend"),
        ({"kv_cache_dtype": "nvfp4"}, "h200", "no attention backend reads this cache"),
        ({"attention_backend": "TRITON_MLA"}, "h200", "cannot read this model"),
        ({"attention_backend": "FLASHMLA_SPARSE", "attention_config": {"backend": "x"}}, "h200", "exclude each other"),
        ({"block_size": 100}, "h200", "a multiple of 64 tokens, not 100"),
        ({"max_model_len": 1048577}, "h200", "above the model's 1048576"),
        ({"max_num_batched_tokens": 512, "max_num_seqs": 1024}, "h200", "below --max-num-seqs 1024"),
        ({"enable_chunked_prefill": False}, "h200", "prefix caching of a state needs chunked prefill"),
        (
            {"enable_chunked_prefill": False, "enable_prefix_caching": False, "max_num_batched_tokens": 8192},
            "h200",
            "chunked prefill is off",
        ),
        ({"disable_hybrid_kv_cache_manager": True}, "h200", "do not share one kind of cache"),
        ({"decode_context_parallel_size": 3, "tensor_parallel_size": 4}, "h200", "does not divide"),
        ({"kv_cache_dtype": "float16"}, "h200", "float16 is not the model's bfloat16"),
        ({"mamba_ssm_cache_dtype": "float16"}, "h200", "the KDA state is float32 or bfloat16"),
        ({"mamba_block_size": 64, "enable_prefix_caching": False}, "h200", "needs prefix caching"),
        ({"disable_chunked_mm_input": True}, "h200", "does not go with prefix caching"),
        ({"use_replayssm": True}, "h200", "does not know this model"),
        ({"speculative_config": {"method": "mtp"}}, "h200", "without num_speculative_tokens"),
        ({"speculative_config": MTP, "spec_tokens": 3}, "h200", "exclude each other"),
        ({"kda_prefill_backend": "fused"}, "h200", "--kda-prefill-backend fused"),
        ({"tensor_parallel_size": 8, "spec_tokens": 126, "spec_method": "mtp"}, "h200", "tail ring of 256 keys"),
    ],
    ids=str,
)
def test_refused(flags: dict[str, object], gpu: str, said: str) -> None:
    with pytest.raises(RefusedError, match=r"at 0\.33\.0") as refused:
        resolved(flags, "0.33.0", gpu)
    assert said in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("flags", "gpu", "said"),
    [
        ({}, "mi300x", "vLLM on ROCm is not planned here"),
        ({"tp_size": 4}, "h200", "tp_size is not a flag of vLLM"),
        ({"prefill_context_parallel_size": 2}, "h200", "not planned here"),
        ({"speculative_config": {"method": "eagle3", "model": "x", "num_speculative_tokens": 3}}, "h200", "eagle3"),
        ({"dtype": "float16"}, "h200", "bfloat16 is"),
        ({"hf_overrides": {"a": 1}}, "h200", "--hf-overrides"),
        ({"gpu_memory_utilization": 1.5}, "h200", "at most 1"),
        ({"max_num_seqs": 0}, "h200", "--max-num-seqs 0"),
        ({"max_model_len": 0}, "h200", "at least 1, or -1"),
        ({"kv_cache_dtype": "fp16"}, "h200", "is not accepted"),
    ],
    ids=str,
)
def test_bad_input(flags: dict[str, object], gpu: str, said: str) -> None:
    with pytest.raises(InputError, match=said) as wrong:
        resolved(flags, "0.33.0", gpu)
    assert "\n" not in str(wrong.value)


@pytest.mark.parametrize("release", ["0.29.0", "0.9.2", "v0.28.0", "0.29", "0.29.0rc1"])
def test_releases_that_do_not_know_the_model(release: str) -> None:
    with pytest.raises(InputError, match=r"does not know this model; the first that does is 0\.30\.0 \(known: 0\.30"):
        load_profile(release)


def test_an_unknown_release() -> None:
    with pytest.raises(InputError, match=r"no profile; known: 0.30.0, 0.31.0, 0.32.0, 0.33.0"):
        load_profile("0.99.0")
    with pytest.raises(InputError, match="no profile; known: "):  # it knows the model
        load_profile("0.30")
    assert releases() == ("0.30.0", "0.31.0", "0.32.0", "0.33.0")


def test_the_long_switch_allows_what_is_refused() -> None:
    assert resolved({"max_model_len": 1048577}, VLLM_ALLOW_LONG_MAX_MODEL_LEN="1").max_model_len == 1048577


@pytest.mark.parametrize("text", ["1", "true", " True ", "TRUE"])
def test_how_the_long_switch_is_spelt(text: str) -> None:
    """envs.py:1115-1118 at 0.33.0, the same in every release."""
    assert resolved({"max_model_len": 1048577}, VLLM_ALLOW_LONG_MAX_MODEL_LEN=text).max_model_len == 1048577


@pytest.mark.parametrize("text", ["0", "", "yes", "on", "2", "false"])
def test_any_other_text_leaves_the_long_switch_off(text: str) -> None:
    with pytest.raises(RefusedError, match="above the model's 1048576"):
        resolved({"max_model_len": 1048577}, VLLM_ALLOW_LONG_MAX_MODEL_LEN=text)


@pytest.mark.parametrize(("mode", "warned"), [("all", True), ("align", False), ("none", False)])
def test_a_cache_mode_that_only_python_takes_is_said(mode: str, warned: bool) -> None:
    """config/cache.py:176 and engine/arg_utils.py:1437-1443, 2304 at 0.33.0: read by nothing, listed for argparse."""
    said = " ".join(resolved({"mamba_cache_mode": mode}, "0.33.0").warnings)
    assert "prefix caching decides" in said
    assert ("the command line does not take it" in said) == warned


def test_a_tail_larger_than_its_page() -> None:
    """0.31 keeps the tail in a page of index keys: 29 drafts at TP8 no longer fit there; 0.30 keeps 4 slots always."""
    flags: dict[str, object] = {"tensor_parallel_size": 8, "spec_method": "mtp", "spec_tokens": 29}
    with pytest.raises(RefusedError, match="larger than the page of index keys"):
        resolved(flags, "0.31.0")
    assert resolved(flags, "0.33.0").tail_slots == 64
    assert resolved(flags, "0.30.0").tail_slots == 4


def test_no_memory_for_a_block() -> None:
    found = blocks({"tensor_parallel_size": 4, "max_model_len": 4096, "max_num_seqs": 1})
    assert start(found, 0).failure.kind == "no memory"
    assert start(found, found.nbytes).failure.kind == "no memory"


def test_one_request_has_to_fit_beside_the_block_that_is_never_given_out() -> None:
    """A fork's public log: 6.8 GiB are needed, 4.32 GiB hold 654,336 tokens; the law is the same with our block."""
    found = blocks({"tensor_parallel_size": 4, "max_model_len": 131072, "max_num_seqs": 1})
    least = (found.needed(131072) + 1) * found.nbytes
    assert start(found, least).failure is None
    failed = start(found, least - 1)
    assert failed.failure.kind == "one request"
    longest = found.longest_context(least // found.nbytes - 1)
    assert f"--max-model-len {longest} fits" in failed.failure.reason
    shorter = blocks({"tensor_parallel_size": 4, "max_model_len": longest, "max_num_seqs": 1})
    assert start(shorter, least - 1).failure is None
    longer = blocks({"tensor_parallel_size": 4, "max_model_len": longest + 1, "max_num_seqs": 1})
    assert start(longer, least - 1).failure.kind == "one request"


def test_requests_above_the_blocks_fail_where_graphs_are_captured() -> None:
    flags: dict[str, object] = {"tensor_parallel_size": 4, "max_model_len": 32768}
    found = blocks(flags)
    some = 1000 * found.nbytes
    failed = start(found, some).failure
    assert failed.kind == "requests above blocks" and "lower it to 1000" in failed.reason
    assert start(blocks({**flags, "max_num_seqs": 1000}), some).failure is None
    assert start(blocks({**flags, "enforce_eager": True}), some).failure is None
    piecewise = {"compilation_config": {"cudagraph_mode": "piecewise"}}
    assert start(blocks({**flags, **piecewise}), some).failure is None


def test_a_fitted_context_is_what_the_blocks_hold() -> None:
    found = blocks({"tensor_parallel_size": 4, "max_model_len": -1, "max_num_seqs": 1})
    begun = start(found, 5 * GIB)
    assert begun.failure is None
    assert begun.max_model_len == found.longest_context(begun.count) < 1048576
    assert found.needed(begun.max_model_len) == begun.count - 1
    assert start(found, 3 * found.nbytes).failure.kind == "one request"


@pytest.mark.parametrize("release", releases())
def test_fp8_weights_take_no_other_method(release: str) -> None:
    """config/model.py, ModelConfig._verify_quantization: the flag is the checkpoint's own method, or it is an error."""
    served = "zai-org/GLM-5.3-Flash"
    for method in ("modelopt_fp4", "mxfp4", "awq"):
        with pytest.raises(RefusedError, match=rf"--quantization {method}: the checkpoint says fp8.*at {release}"):
            kv.plan({"quantization": method}, engine=f"vllm-{release}", gpu="b200", served=served)
    for flags in ({}, {"quantization": "fp8"}, {"quantization": "deepseek_v4_fp8"}):
        assert kv.plan(flags, engine=f"vllm-{release}", gpu="b200", served=served).weight_format.format == "fp8"
    for other in ("/models/x", None):  # its config.json is the server's, or nobody names the model
        made = kv.plan({"quantization": "modelopt_fp4"}, engine=f"vllm-{release}", gpu="b200", served=other)
        assert made.weight_format.format == "nvfp4"


@pytest.mark.parametrize("flags", [{}, {"kv_cache_memory_bytes": 20 * GIB}])
def test_what_is_free_is_asked_whatever_the_blocks_take(flags: dict[str, object]) -> None:
    """v1/worker/gpu_worker.py:542 at 0.33.0: before anything is measured."""
    made = kv.plan({"tensor_parallel_size": 8, **flags}, engine="vllm-0.33.0", gpu="h200")
    with pytest.raises(RefusedError, match=r"50\.00 GiB are free"):
        begin(made, MemoryGiven(pre_gib=50.0))
    with pytest.raises(InputError, match=r"--pre-gib 200\.0 is more than a H200 has"):
        begin(made, MemoryGiven(pre_gib=200.0))
    assert begin(made, MemoryGiven(pre_gib=139.0)).start.count


def test_an_estimate_of_what_is_free_refuses_no_blocks_that_are_known() -> None:
    """0.92 of a DGX Spark is more than most have free: said, or nothing where a log shows the memory of the blocks."""
    flags = {"tensor_parallel_size": 4, "max_model_len": 131072, "max_num_seqs": 64, "kv_cache_memory_bytes": 6 * GIB}
    made = kv.plan(flags, engine="vllm-0.33.0", gpu="gb10")
    assert [note for note in begin(made, MemoryGiven()).notes if "--pre-gib says what is" in note]
    assert not [note for note in begin(made, MemoryGiven(available_gib=6.0)).notes if "--pre-gib" in note]
    with pytest.raises(RefusedError, match=r"lower it to 0\.82$|lower it to 0\.82 "):
        begin(made, MemoryGiven(pre_gib=100.0))
