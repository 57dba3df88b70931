"""Every resolved value of a vLLM launch with its reason: given, by the card, by the release, by another flag."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import glm_kvplan as kv
from glm_kvplan.engines.flag import Choice
from glm_kvplan.engines.vllm.flags import FLAG
from glm_kvplan.engines.vllm.plan import Plan
from glm_kvplan.engines.vllm.profile import load_profile
from glm_kvplan.engines.vllm.resolve.resolver import resolve
from glm_kvplan.errors import InputError, RefusedError
from glm_kvplan.memory.gpu import find_gpu
from glm_kvplan.model.loader import bundled_geometry

MTP3 = {"method": "mtp", "num_speculative_tokens": 3}


def plan(gpu: str = "h200", release: str = "0.33.0", environment: Any = None, **flags: object) -> Plan:
    made: Plan = kv.plan(
        {"tensor_parallel_size": 4, **flags}, engine=f"vllm-{release}", gpu=gpu, environment=environment or {}
    )
    return made


def choice(name: str, gpu: str = "h200", release: str = "0.33.0", **flags: object) -> Choice:
    return {each.flag: each for each in plan(gpu, release, **flags).choices}[name]


def said(name: str, gpu: str = "h200", release: str = "0.33.0", **flags: object) -> tuple[object, bool, str]:
    return choice(name, gpu, release, **flags)[1:4]


def refused(message: str, gpu: str = "h200", release: str = "0.33.0", **flags: object) -> None:
    with pytest.raises(RefusedError, match=message):
        plan(gpu, release, **flags)


def test_values_are_given_or_have_their_reason() -> None:
    assert said("tensor_parallel_size") == (4, True, "given")
    assert said("data_parallel_size") == (1, False, "one engine unless given")
    assert said("nnodes") == (1, False, "one host unless given") and said("nnodes", nnodes=2) == (2, True, "given")
    assert said("decode_context_parallel_size", decode_context_parallel_size=2) == (
        2, True, "given: a request's tokens lie on so many GPUs"
    )  # fmt: skip
    assert said("gpu_memory_utilization") == (0.92, False, "vLLM's default")
    assert said("gpu_memory_utilization", gpu_memory_utilization=0.9) == (0.9, True, "given")
    assert said("max_model_len") == (1048576, False, "the model's own")
    assert said("max_model_len", max_model_len=9000) == (9000, True, "given")
    fitted = "-1: lowered to what the blocks can hold, at most the model's own"
    assert said("max_model_len", max_model_len=-1) == (1048576, False, fitted)
    assert said("enforce_eager", enforce_eager=True) == (True, True, "given: no CUDA graphs")
    fixed = "given: so many blocks, whatever the memory"
    assert said("num_gpu_blocks_override", num_gpu_blocks_override=2000) == (2000, True, fixed)
    exactly = "given: the blocks take exactly this; nothing is profiled"
    assert said("kv_cache_memory_bytes", kv_cache_memory_bytes=60 << 30) == (60 << 30, True, exactly)
    assert plan(kv_cache_memory_bytes=0).deployment.kv_cache_memory_bytes is None


def test_flags_that_no_rule_decides() -> None:
    wanted = {
        "enable_chunked_prefill": (True, False, "on for models that generate"),
        "disable_hybrid_kv_cache_manager": (False, False, "the model's layers need several kinds of block"),
        "quantization": (None, False, "as the checkpoint's config.json says"),
        "speculative_config": (None, False, "nothing drafts"),
        "kv_cache_memory_bytes": (None, False, "not given: vLLM profiles what is left"),
        "num_gpu_blocks_override": (None, False, "not given: as many as the memory holds"),
        "spec_method": (None, False, "not given"),
        "performance_mode": ("balanced", False, "vLLM's default"),
    }
    for name, found in wanted.items():
        assert said(name) == found, name
    assert choice("performance_mode").source == "engine/arg_utils.py at 0.33.0"
    assert choice("performance_mode", release="0.31.0").source == "engine/arg_utils.py at 0.31.0"
    assert choice("spec_method").source == choice("quantization").source == ""
    assert choice("quantization", quantization="fp8")[1:] == ("fp8", True, "given", "")
    assert said("performance_mode", performance_mode="interactivity") == ("interactivity", True, "given")


@pytest.mark.parametrize(
    ("gpu", "release", "flags", "wanted"),
    [
        ("h200", "0.33.0", {}, ("auto", False, "the model's bfloat16 unless asked otherwise: 1024")),
        ("h200", "0.33.0", {"kv_cache_dtype": "auto"}, ("auto", True, "given: 1024")),
        ("h200", "0.33.0", {"kv_cache_dtype": "fp8"}, ("fp8", True, "given: 512")),
        ("h200", "0.33.0", {"kv_cache_dtype": "fp8_ds_mla"}, ("fp8_ds_mla", True, "given: 656")),
        ("b200", "0.33.0", {}, ("fp8", False, "the release's own default for this model on SM100: 512")),
        ("b200", "0.33.0", {"kv_cache_dtype": "bfloat16"}, ("bfloat16", True, "given: 1024")),
        ("b200", "0.30.0", {}, ("auto", False, "the model's bfloat16 unless asked otherwise: 1024")),
        ("b200", "0.32.0", {"kv_cache_dtype": "float16"}, ("float16", True, "given: 1024")),
        ("rtxpro6000", "0.33.0", {"kv_cache_dtype": "fp8"}, ("fp8_ds_mla", False,
         "the FLASHINFER_MLA_SPARSE_SM120 backend reads scaled rows alone, whatever the flag says: 656")),
    ],
)  # fmt: skip
def test_a_row_by_card_release_and_flag(gpu: str, release: str, flags: dict[str, object], wanted: Any) -> None:
    value, given, reason = wanted
    assert said("kv_cache_dtype", gpu, release, **flags) == (value, given, f"{reason} bytes a token in a layer")


def test_rows_that_the_release_or_the_backend_does_not_take() -> None:
    refused("float16 is not the model's bfloat16; auto and bfloat16 are", "b200", kv_cache_dtype="float16")
    nope = "FLASHMLA_SPARSE takes no rows without RoPE in this release"
    refused(nope, release="0.30.0", kv_cache_dtype="fp8_ds_mla")
    refused("FLASH_ATTN_MLA_SPARSE takes auto, bfloat16, not fp8_ds_mla", release="0.31.0", kv_cache_dtype="fp8_ds_mla")
    refused("knows no decode context parallelism", kv_cache_dtype="fp8", decode_context_parallel_size=2)
    refused("takes blocks of a multiple of 64 tokens, not 96", block_size=96)
    assert plan("b200", block_size=96).deployment.block_size == 2176
    with pytest.raises(InputError, match="--kv-cache-dtype-skip-layers is not planned"):
        plan(kv_cache_dtype_skip_layers="1")
    refused(r"A100 .*\(compute capability 8\.0\) has no sparse MLA backend", "a100")


def test_a_wider_row_than_it_is_sized_with_is_said() -> None:
    (warning,) = plan("rtxpro6000").warnings
    assert warning == (
        "vLLM sizes its blocks as if a token took 512 bytes a layer; it takes 656, so they hold 28% more memory than "
        "the state needs"
    )
    assert plan().warnings == ()


@pytest.mark.parametrize("spelt", ["FLASH_ATTN_MLA_SPARSE", "flash_attn_mla_sparse"])
def test_a_backend_by_its_flag_or_in_its_table(spelt: str) -> None:
    flags: tuple[dict[str, object], ...] = ({"attention_backend": spelt}, {"attention_config": {"backend": spelt}})
    for given in flags:
        found = choice("attention_backend", **given)
        assert (found.value, found.reason) == ("FLASH_ATTN_MLA_SPARSE", "given")
    first = "the first that reads auto rows without RoPE on SM90"
    for auto in ("auto", "Auto"):
        assert said("attention_backend", attention_backend=auto) == ("FLASHINFER_MLA_SPARSE_SM90", False, first)
    refused("exclude each other", attention_backend=spelt, attention_config={"backend": spelt})
    refused("--attention-backend FLASHINFER_MLA_SPARSE cannot read", attention_backend="FLASHINFER_MLA_SPARSE")
    with pytest.raises(RefusedError, match="FLASH_ATTN_MLA_SPARSE takes auto, bfloat16, not fp8") as wrong:
        plan(attention_backend=spelt, kv_cache_dtype="fp8")
    assert wrong.value.source == plan().profile.source("selected_backend") != plan().profile.source("no_backend")
    shared = plan(decode_context_parallel_size=2).deployment
    assert shared.mla_backend == "FLASHMLA_SPARSE"


def test_prefix_caching_and_what_goes_with_it() -> None:
    assert said("enable_prefix_caching") == (True, False, "on for models with state layers")
    assert said("enable_prefix_caching", enable_prefix_caching=False) == (False, True, "given")
    refused("--mamba-block-size needs prefix caching", mamba_block_size=64, enable_prefix_caching=False)
    assert plan(mamba_block_size=64).deployment.enable_prefix_caching
    off: dict[str, object] = {"enable_chunked_prefill": False, "max_num_batched_tokens": 1048576}
    refused("prefix caching of a state needs chunked prefill", **off)
    assert not plan(enable_prefix_caching=False, **off).deployment.enable_prefix_caching
    refused("--disable-chunked-mm-input does not go with", disable_chunked_mm_input=True)
    assert plan(disable_chunked_mm_input=True, enable_prefix_caching=False).deployment.prefill_checkpoint
    refused("--use-replayssm does not know this model", use_replayssm=True)
    refused("needs a float16 state", enable_mamba_cache_stochastic_rounding=True)


@pytest.mark.parametrize(
    ("release", "mode", "words"),
    [
        ("0.33.0", "none", ["--mamba-cache-mode has no effect in 0.33.0: prefix caching decides"]),
        ("0.33.0", "all", ["--mamba-cache-mode has no effect in 0.33.0: prefix caching decides",
                           "--mamba-cache-mode all: the command line does not take it; leave it out"]),
        ("0.31.0", "all", []),
    ],
)  # fmt: skip
def test_a_cache_mode_by_release(release: str, mode: str, words: list[str]) -> None:
    assert list(plan(release=release, mamba_cache_mode=mode).warnings) == words
    refused("--mamba-cache-mode all is not one of align, none", release="0.32.0", mamba_cache_mode="all")


def test_the_state_by_release() -> None:
    for asked in ("auto", "float32", "bfloat16"):
        old = plan(release="0.31.0", mamba_ssm_cache_dtype=asked)
        assert old.deployment.state_dtype == "float32"
        assert len(old.warnings) == (asked == "bfloat16")
        new = plan(mamba_ssm_cache_dtype=asked)
        assert new.deployment.state_dtype == ("bfloat16" if asked == "bfloat16" else "float32") and not new.warnings
    refused("the KDA state is float32 or bfloat16", mamba_ssm_cache_dtype="float16")
    assert said("mamba_ssm_cache_dtype") == ("float32", False, "float32 unless asked otherwise")
    assert said("mamba_ssm_cache_dtype", mamba_ssm_cache_dtype="bfloat16") == ("bfloat16", True, "given")
    reason = "the KDA layers do not read the flag"
    assert said("mamba_ssm_cache_dtype", release="0.31.0") == ("float32", False, reason)
    conv = [plan(mamba_cache_dtype=dtype).deployment.conv_dtype for dtype in ("auto", "bfloat16", "float32")]
    assert conv == ["bfloat16", "bfloat16", "float32"]


def test_the_checkpoint_of_a_prefill() -> None:
    more = ": one state more a request, the prefill's checkpoint"
    where = "FlashKDA where the GPU has it"
    assert said("kda_prefill_backend") == ("flashkda", False, where + more)
    assert said("kda_prefill_backend", kda_prefill_backend="auto") == ("flashkda", False, where + more)
    assert said("kda_prefill_backend", kda_prefill_backend="flashkda") == ("flashkda", True, "given" + more)
    assert said("kda_prefill_backend", enable_prefix_caching=False) == ("flashkda", False, where)
    assert said("kda_prefill_backend", kda_prefill_backend="triton") == ("triton", True, "given")
    nested = plan(additional_config={"kda_prefill_backend": "triton"})
    assert not nested.deployment.prefill_checkpoint and nested.deployment.states_per_request == 2
    refused("this model takes auto, triton, flashkda", additional_config={"kda_prefill_backend": "fused"})
    assert not plan(release="0.31.0").deployment.prefill_checkpoint
    assert "kda_prefill_backend" not in {each.flag for each in plan(release="0.31.0").deployment.choices}


@pytest.mark.parametrize(
    ("gpu", "seqs", "tokens", "card"),
    [("h200", 1024, 8192, "a card of 70 GiB or more"), ("b200", 1024, 16384, "a card of 160 GiB or more")],
)
def test_batches_by_the_card(gpu: str, seqs: int, tokens: int, card: str) -> None:
    why = f"an API server's default on {card}"
    assert said("max_num_seqs", gpu) == (seqs, False, why) and said("max_num_batched_tokens", gpu) == (
        tokens,
        False,
        why,
    )
    doubled = f"{why}, doubled by --performance-mode throughput"
    assert said("max_num_seqs", gpu, performance_mode="throughput") == (2 * seqs, False, doubled)
    assert said("max_num_batched_tokens", gpu, performance_mode="throughput") == (2 * tokens, False, doubled)
    assert said("max_num_seqs", gpu, max_num_seqs=40) == (40, True, "given")


def test_batches_of_a_gb10_and_of_small_cards() -> None:
    small: dict[str, object] = {"tensor_parallel_size": 2, "max_model_len": 131072}
    assert said("max_num_seqs", "gb10", **small) == (256, False, "an API server's default on a GB10")
    assert plan("gb10", **small).deployment.max_num_batched_tokens == 2048
    large = plan("gb10", "0.30.0", **small).deployment
    assert (large.max_num_seqs, large.max_num_batched_tokens) == (1024, 8192)
    card = "a card below 70 GiB"
    assert said("max_num_seqs", "h200:60000") == (256, False, f"an API server's default on {card}")


def test_batches_of_experts_that_exchange_in_fixed_sizes() -> None:
    flags: dict[str, object] = {"data_parallel_size": 2, "enable_expert_parallel": True}
    for exchange in ("deepep_low_latency", "nixl_ep"):
        found = said("max_num_batched_tokens", all2all_backend=exchange, **flags)
        assert found == (256, False, "an API server's default on experts that exchange in batches of fixed size")
        assert plan(all2all_backend=exchange, **flags).deployment.max_num_seqs == 256
    for other in ({**flags, "data_parallel_size": 1}, {**flags, "enable_expert_parallel": False}):
        assert plan(all2all_backend="nixl_ep", **other).deployment.max_num_batched_tokens == 8192
    assert plan(all2all_backend="deepep_v2", **flags).deployment.max_num_batched_tokens == 8192


def test_batches_by_what_is_given() -> None:
    """engine/arg_utils.py:2940 at 0.33.0: tokens by requests and their length, requests by given tokens."""

    def both(**flags: object) -> tuple[int, int]:
        found = plan(**flags).deployment
        return found.max_num_seqs, found.max_num_batched_tokens

    assert both(max_num_seqs=4, max_model_len=1000) == (4, 4000)
    assert both(max_num_batched_tokens=100) == (100, 100)
    assert both(max_num_seqs=100, max_num_batched_tokens=100) == (100, 100)
    refused("--max-num-batched-tokens 99 is below --max-num-seqs 100", max_num_seqs=100, max_num_batched_tokens=99)
    off: dict[str, object] = {"enable_chunked_prefill": False, "enable_prefix_caching": False}
    assert both(**off) == (1024, 1048576) and both(max_model_len=4096, **off) == (1024, 8192)
    refused(
        "--max-num-batched-tokens 4095 is below --max-model-len 4096",
        max_num_batched_tokens=4095,
        max_model_len=4096,
        **off,
    )
    assert both(max_num_batched_tokens=4096, max_model_len=4096, **off) == (1024, 4096)


@pytest.mark.parametrize(
    ("flags", "graphs", "full"),
    [
        ({}, True, True),
        ({"enforce_eager": True}, False, False),
        ({"optimization_level": "0"}, False, False),
        ({"optimization_level": "1"}, True, False),
        ({"optimization_level": "3"}, True, True),
        ({"compilation_config": {"cudagraph_mode": "full_decode_only"}, "optimization_level": "0"}, True, True),
        ({"compilation_config": {"cudagraph_mode": "NONE"}}, False, False),
        ({"compilation_config": {"cudagraph_mode": "FULL"}, "enforce_eager": True}, False, False),
    ],
)
def test_which_graphs_are_captured(flags: dict[str, object], graphs: bool, full: bool) -> None:
    found = plan(**flags).deployment
    assert (found.cuda_graphs, found.full_cuda_graphs) == (graphs, full)


@pytest.mark.parametrize(
    ("flags", "largest"),
    [
        ({}, None),
        ({"max_cudagraph_capture_size": 64}, 64),
        ({"cudagraph_capture_sizes": [8, 32, 1]}, 32),
        ({"max_cudagraph_capture_size": 16, "cudagraph_capture_sizes": [8, 32]}, 16),
        ({"max_cudagraph_capture_size": 64, "cudagraph_capture_sizes": [8, 32]}, 32),
        ({"compilation_config": {"cudagraph_capture_sizes": [8, 24]}}, 24),
        ({"compilation_config": {"max_cudagraph_capture_size": 7}}, 7),
        ({"compilation_config": {"cudagraph_capture_sizes": []}}, None),
    ],
)
def test_the_largest_batch_that_is_captured(flags: dict[str, object], largest: int | None) -> None:
    assert plan(**flags).deployment.largest_capture == largest
    twice = {"cudagraph_capture_sizes": [1], "compilation_config": {"cudagraph_capture_sizes": [1]}}
    refused("--cudagraph-capture-sizes and cudagraph_capture_sizes of --compilation-config exclude", **twice)


def drafts(**flags: object) -> tuple[object, int, int]:
    found = plan(**flags).deployment
    return found.speculative_method, found.num_speculative_tokens, found.draft_layers


def test_drafts_by_their_words() -> None:
    assert drafts(speculative_config=MTP3) == ("mtp", 3, 1) == drafts(spec_method="mtp", spec_tokens=3)
    assert drafts(spec_method="deepseek_mtp", spec_tokens=2) == ("mtp", 2, 1)
    assert drafts(spec_method="mtp", spec_model="x/y") == ("mtp", 1, 1)
    assert drafts(speculative_config={"method": "mtp", "num-speculative-tokens": 2}) == ("mtp", 2, 1)
    for model in ("ngram", "[ngram]"):
        assert drafts(spec_model=model, spec_tokens=2) == ("ngram", 2, 0)
    for method in ("ngram", "[ngram]", "ngram_gpu", "suffix"):
        assert drafts(spec_method=method, spec_tokens=4) == (method, 4, 0)
    assert drafts() == (None, 0, 0) and drafts(spec_method="mtp", spec_tokens=1) == ("mtp", 1, 1)
    layered, plain = (said("speculative_config", spec_method=method, spec_tokens=2) for method in ("mtp", "suffix"))
    assert layered[2] == "given: method mtp, one MTP layer, run once a token; one more state a token"
    assert plain[2] == "given: method suffix, a draft without layers of its own; one more state a token"
    assert layered[0] == {"method": "mtp", "num_speculative_tokens": 2}


@pytest.mark.parametrize("tokens", [0, -1, True, 2.0, "3"])
def test_a_number_of_drafts_is_whole_and_above_0(tokens: object) -> None:
    with pytest.raises(InputError, match="must be a whole number above 0"):
        plan(speculative_config={"method": "mtp", "num_speculative_tokens": tokens})


def test_drafts_that_are_not_planned() -> None:
    for config, words in (
        ({**MTP3, "num_speculative_tokens_per_batch_size": {}}, "per_batch_size is not planned here"),
        ({"method": 3, "num_speculative_tokens": 3}, "must be a word such as mtp"),
        ({"model": "x/y", "num_speculative_tokens": 3}, "the cache of a draft_model draft is not planned"),
        ({"method": "eagle", "num_speculative_tokens": 3}, "the cache of a eagle draft is not planned"),
    ):
        with pytest.raises(InputError, match=words):
            plan(speculative_config=config)
    refused("method ngram without num_speculative_tokens", spec_method="ngram")
    refused("method mtp without num_speculative_tokens", spec_method="mtp")
    refused(
        "--spec-tokens and num_speculative_tokens of --speculative-config exclude",
        speculative_config=MTP3,
        spec_tokens=3,
    )


def test_a_checkpoint_of_other_heads_or_drafts() -> None:
    """What this model's own numbers never reach: KDA heads beside attention heads, and no or two MTP layers."""
    profile, gpu = load_profile("0.33.0"), find_gpu("h200")
    few = replace(bundled_geometry(), linear_num_heads=6)
    with pytest.raises(RefusedError, match="--tensor-parallel-size 4 does not divide the 6 KDA heads"):
        resolve({"tensor_parallel_size": 4}, geometry=few, profile=profile, gpu=gpu)
    for layers in (0, 2):
        other = replace(bundled_geometry(), num_nextn_predict_layers=layers)
        with pytest.raises(InputError, match=f"the checkpoint has {layers} MTP layers"):
            resolve({"speculative_config": MTP3}, geometry=other, profile=profile, gpu=gpu)


def test_lengths_at_their_ends() -> None:
    assert plan(max_model_len=1).context_length == 1 and plan(max_model_len=1048576).context_length == 1048576
    fits = [plan(**flags).deployment.fits_max_model_len for flags in ({}, {"max_model_len": 9}, {"max_model_len": -1})]
    assert fits == [False, False, True]


def test_a_block_and_its_step() -> None:
    rows = "(1024 bytes a token) are as large as its state (1,085,440 bytes)"
    text = f"the fewest tokens, in steps of {{}}, whose rows in a layer {rows}"
    assert said("block_size") == (1152, False, text.format(128))
    stepped = text.format(192) + "; --block-size 192 is its step, not its size"
    assert said("block_size", block_size=192) == (1152, False, stepped)
    small = choice("block_size", "b200", block_size=96).reason
    assert "in steps of 128," in small and small.partition(" (plat")[0].endswith(
        "--block-size 96 is below the smallest step"
    )
    assert said("block_size", block_size=1152) == (1152, True, text.format(1152))
    unit = choice("block_size", "rtxpro6000").reason
    assert "in steps of 256," in unit and plan("rtxpro6000").deployment.block_size % 256 == 0
    odd = said("block_size", block_size=1088)
    assert odd[0] == 1152 and "; a multiple of the indexer's 128; --block-size 1088 is" in odd[2]


def test_tails_by_the_drafts_and_the_release() -> None:
    for release, slots in (("0.30.0", [4, 4, 4]), ("0.31.0", [4, 8, 16]), ("0.33.0", [4, 8, 16])):
        found = []
        for tokens in (0, 3, 5):
            config = {"speculative_config": {**MTP3, "num_speculative_tokens": tokens}} if tokens else {}
            found.append(plan(release=release, **config).deployment.tail_slots)
        assert found == slots, release


def test_layouts_that_cannot_be() -> None:
    refused("--tensor-parallel-size 3 does not divide the 64 attention heads", tensor_parallel_size=3)
    refused("--decode-context-parallel-size 3 does not divide --tensor-parallel-size 4", decode_context_parallel_size=3)
    refused("--nnodes 3 does not divide the 4 GPUs", nnodes=3)
    refused("decode context parallelism does not know the tail", release="0.31.0", decode_context_parallel_size=2)
    assert plan(pipeline_parallel_size=1, prefill_context_parallel_size=1, nnodes=4).hosts == 4
    with pytest.raises(InputError, match="--prefill-context-parallel-size above 1"):
        plan(prefill_context_parallel_size=2)


def test_what_would_be_another_plan() -> None:
    assert plan(dtype="bfloat16").deployment.block_size == plan(dtype="auto").deployment.block_size
    for flags, words in (
        ({"dtype": "float16"}, "--dtype float16 is not planned here: bfloat16 is"),
        ({"hf_overrides": {"a": 1}}, "--hf-overrides changes the model"),
        ({"attention_config": {"hisparse_config": {}}}, "hisparse_config is not planned"),
        ({"mm_ipc_gpu_memory_gb": -0.5}, "--mm-ipc-gpu-memory-gb -0.5: must not be negative"),
        ({"cpu_offload_gb": -0.5}, "--cpu-offload-gb -0.5: must not be negative"),
    ):
        with pytest.raises(InputError, match=words):
            plan(**flags)
    refused("--disable-hybrid-kv-cache-manager", disable_hybrid_kv_cache_manager=True)
    beside = plan(enable_lora=True, enable_eplb=False, offload_group_size=0, kv_transfer_config={}, enable_dbo=True)
    assert beside.warnings == ("these take or free GPU memory that is not planned here: --enable-lora, --enable-dbo",)


def test_variables_are_read_as_vllm_reads_them() -> None:
    name = "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS"
    for text, on in (("0", False), ("1", True), (" 2 ", True), ("-1", True)):
        assert plan(environment={name: text}).deployment.graphs_reserved == on
    assert plan().deployment.graphs_reserved
    with pytest.raises(InputError, match=f"{name}='yes': vLLM reads a whole number here"):
        plan(environment={name: "yes"})
    layout = "VLLM_KV_CACHE_LAYOUT"
    for release, known in (("0.33.0", ["BLHNC"]), ("0.31.0", ["LBHNC", "HND"])):
        for asked in ("BLHNC", "LBHNC", "HND"):
            if asked in known:
                assert plan(release=release, environment={layout: asked}).profile.release == release
            else:
                only = " or ".join(known)
                with pytest.raises(RefusedError, match=f"{layout}={asked}: this model's caches take {only} alone"):
                    plan(release=release, environment={layout: asked})


def test_requests_that_flags_ask_for_are_of_all_engines() -> None:
    assert plan(max_num_seqs=7, data_parallel_size=2).asked_requests == 14 and plan().asked_requests is None


@pytest.mark.parametrize(("host", "pod"), [(1.0, None), (None, 1.0), (1.0, 1.0)])
def test_memory_of_a_host_is_not_planned(host: float | None, pod: float | None) -> None:
    with pytest.raises(InputError, match="leave --host-gib and --pod-gib out"):
        plan().host(host, pod)
    assert plan().host(None, None) and not plan().has_host_pools


def test_a_flag_that_nobody_resolved_is_an_error() -> None:
    assert plan().deployment.choice("block_size").flag == "block_size" in FLAG
    with pytest.raises(KeyError):
        plan().deployment.choice("performance_mode")


def test_weights_of_a_stand_in_are_of_the_served_name() -> None:
    """The bundled config says how the published checkpoint is stored, not another one that is served in its place."""
    for name, stored in (("NVFP4", "nvfp4"), ("BF16", "bf16")):
        served: Plan = kv.plan(launch=f"vllm serve zai-org/GLM-5.3-Flash-{name}", engine="vllm", gpu="h200")
        assert served.weight_format.format == stored
    assert plan().weight_format[:2] == ("fp8", "quantization_config: fp8") and not plan().weight_format.assumed
    launched: Plan = kv.plan(launch="vllm serve zai-org/GLM-5.3-Flash", engine="vllm", gpu="h200")
    assert launched.weight_format == plan().weight_format


def test_weights_of_a_folder_are_of_its_name_where_its_config_says_nothing(tmp_path: Path) -> None:
    config = {name: value for name, value in plan().model.config.items() if name != "quantization_config"}
    folder = tmp_path / "GLM-5.3-Flash-NVFP4"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    own: Plan = kv.plan({}, engine="vllm", gpu="h200", model=str(folder))
    assert own.served is None and own.weight_format[:2] == ("nvfp4", "the name 'glm-5.3-flash-nvfp4'")
