"""Rules in which a small mistake once went unnoticed by every other test. The values are the engine's own."""

from collections.abc import Iterable
from dataclasses import replace

import pytest
from test_likely_card import boot, free
from test_resolve_rules import A100, MI300X, resolved

from glm_kvplan.engines.planner import plan
from glm_kvplan.engines.sglang.boot_log.likely_card import likely_card
from glm_kvplan.engines.sglang.boot_log.log_rows import printed_sizes
from glm_kvplan.engines.sglang.checks.judgements import longest_context
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.profile import load_profile
from glm_kvplan.engines.sglang.resolve.resolver import resolve
from glm_kvplan.engines.weight_format import weight_format
from glm_kvplan.errors import KvplanError, RefusedError
from glm_kvplan.memory.gpu import Gpu, find_gpu
from glm_kvplan.model.loader import bundled_geometry


@pytest.mark.parametrize(
    ("role", "prefill", "decode", "rows"),
    [
        ("decode", "trtllm", "flashmla_kv", "fp8_scaled"),
        ("decode", "flashmla_kv", "trtllm", "fp8_raw"),
        ("prefill", "flashmla_kv", "trtllm", "fp8_scaled"),
        ("prefill", "trtllm", "flashmla_kv", "fp8_raw"),
        ("null", "trtllm", "flashmla_kv", "fp8_raw"),
        ("null", "flashmla_kv", "trtllm", "fp8_raw"),
    ],
)
def test_the_kernel_of_the_server_s_own_role_shapes_the_rows(role: str, prefill: str, decode: str, rows: str) -> None:
    """mem_cache/kv_cache_configurator.py:3412-3475 at 0.5.23 (calculate_mla_kv_cache_dim)."""
    flags = {"kv_cache_dtype": "fp8_e4m3", "dsa_prefill_backend": prefill, "dsa_decode_backend": decode}
    assert resolved("b200", "0.5.23", tp_size=4, disaggregation_mode=role, **flags).kv_layout == rows


Q8 = {"dsa_prefill_backend": "flashmla_sparse_q8", "tp_size": 8}


@pytest.mark.parametrize(
    ("gpu", "release", "dtype", "more", "refused"),
    [
        ("h200", "0.5.21", "fp8_e4m3", {}, None),
        ("h200", "0.5.21", "bfloat16", {}, "takes FP8 rows on Hopper only; .* q8_reads_bf16 = true"),
        ("b200", "0.5.21", "fp8_e4m3", {}, "takes FP8 rows on Hopper only"),
        ("h200", "0.5.22", "bfloat16", {}, None),
        ("h200", "0.5.23", "bfloat16", {}, None),
        ("h200", "0.5.23", "fp8_e4m3", {}, "reads BF16 rows only"),
        ("b200", "0.5.23", "bfloat16", {}, "runs on Hopper only"),
        ("h200", "0.5.23", "bfloat16", {"enable_mixed_chunk": True}, "without --enable-mixed-chunk"),
    ],
)
def test_the_q8_prefill_kernel_takes_other_rows_since_0_5_22(
    gpu: str, release: str, dtype: str, more: dict[str, object], refused: str | None
) -> None:
    """layers/attention/dsa_backend.py:501-513 at 0.5.21, :434-482 at 0.5.23; the model has no RoPE part."""
    if refused is None:
        assert resolved(gpu, release, kv_cache_dtype=dtype, **Q8, **more).dsa_prefill_backend == "flashmla_sparse_q8"
    else:
        with pytest.raises(RefusedError, match=refused):
            resolved(gpu, release, kv_cache_dtype=dtype, **Q8, **more)


# What prepare_server_args and the resolution of 0.5.23 give for an H200, run on their own.
@pytest.mark.parametrize(
    ("batch", "fraction"), [(256, 0.80465), (280, 0.80085), (300, 0.79705), (301, 0.7733), (320, 0.76855)]
)
def test_attention_groups_keep_more_free_for_batches_above_300(batch: int, fraction: float) -> None:
    flags = {"tp_size": 8, "dp_size": 8, "enable_dp_attention": True, "cuda_graph_max_bs_decode": batch}
    assert resolved("h200", "0.5.23", **flags).mem_fraction_static == pytest.approx(fraction, abs=1e-9)


@pytest.mark.parametrize(("size", "starts"), [(None, True), (1, True), (4, True), (2, False), (8, False)])
def test_the_dense_layers_are_split_over_one_rank_or_all(size: int | None, starts: bool) -> None:
    """arg_groups/validation_hook.py:119-249 at 0.5.23."""
    if starts:
        resolved("h200", "0.5.23", tp_size=4, moe_dense_tp_size=size)
    else:
        with pytest.raises(RefusedError, match="moe-dense-tp-size"):
            resolved("h200", "0.5.23", tp_size=4, moe_dense_tp_size=size)


def test_helion_stays_helion_where_flashinfer_is_the_default() -> None:
    """arg_groups/attention_hook.py:281-525 at 0.5.23: a replayed decode takes triton and helion only."""
    flags: dict[str, object] = {
        "mamba_ssm_dtype": "bfloat16",
        "enable_linear_replayssm": True,
        "disable_radix_cache": True,
    }
    resolved("b200", "0.5.23", tp_size=4, linear_attn_backend="helion", **flags)
    with pytest.raises(RefusedError, match="flashinfer KDA decode kernel"):
        resolved("b200", "0.5.23", tp_size=4, **flags)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("x/GLM-5.3-Flash-W8A8", "int8"),
        ("x/GLM-5.3-Flash-INT8", "int8"),
        ("x/GLM-5.3-Flash-W4AFP8", "w4afp8"),
        ("x/GLM-5.3-Flash-AWQ", "w4a16"),
        ("x/GLM-5.3-Flash-GPTQ", "w4a16"),
        ("x/GLM-5.3-Flash-int4", "w4a16"),
        ("x/GLM-5.3-Flash-AutoRound", "w4a16"),
        ("x/GLM-5.3-Flash-MXFP4", "mxfp4"),
        ("x/GLM-5.3-Flash-MXFP8", "mxfp8"),
        ("x/GLM-5.3-Flash-FP4", "nvfp4"),
        ("x/GLM-5.3-Flash-FP8", "fp8"),
        ("x/GLM-5.3-Flash-BF16", "bf16"),
        ("x/GLM-5.3-Flash-bfloat16", "bf16"),
    ],
)
def test_every_word_in_a_model_s_name(name: str, expected: str) -> None:
    assert weight_format({}, None, name).format == expected


@pytest.mark.parametrize(
    ("flag", "expected"),
    [
        ("w8a8_fp8", "fp8"), ("modelopt_fp8", "fp8"), ("mxfp8", "mxfp8"), ("modelopt_fp4", "nvfp4"),
        ("nvfp4_online", "nvfp4"), ("petit_nvfp4", "nvfp4"), ("mxfp4", "mxfp4"), ("quark_mxfp4", "mxfp4"),
        ("w4afp8", "w4afp8"), ("awq", "w4a16"), ("awq_marlin", "w4a16"), ("gptq", "w4a16"), ("gptq_marlin", "w4a16"),
        ("moe_wna16", "w4a16"), ("auto-round", "w4a16"), ("w8a8_int8", "int8"), ("auto-round-int8", "int8"),
        ("unquant", "bf16"),
    ],
)  # fmt: skip
def test_every_word_of_quantization(flag: str, expected: str) -> None:
    assert weight_format({"quantization": flag}).format == expected


@pytest.mark.parametrize(("gib", "known"), [("178.00", True), ("170.00", True), ("168.00", False)])
def test_a_card_has_94_percent_of_its_memory_free_before_the_load(gib: str, known: bool) -> None:
    """A B200 of 179.06 GiB; with less free, no card of that kernel is known."""
    found = likely_card(boot(*free(gib, "trtllm")), {}, {})
    assert found is not None and found.known is known


def slots_of(lines: Iterable[str]) -> int | None:
    return printed_sizes(boot(*(f"[2026-05-14 08:11:02 TP0] {line}" for line in lines))).state_slots


def test_the_slots_that_were_sized_count_and_not_those_that_decode_raised_them_to() -> None:
    raised = (
        "mamba_size (32) is less than decode side's max_slots_needed (96 = 96 reqs * 1 slots/req), "
        "raising effective_mamba_size to 96"
    )
    pool = "Mamba Cache is allocated. max_mamba_cache_size: 96, conv_state size: 0.00GB, ssm_state size: 0.00GB "
    assert slots_of([raised, pool]) == 32
    assert slots_of([pool]) == 96


def test_a_request_leaves_one_token_of_the_pool_and_what_decode_reserves() -> None:
    sizes = PoolSizes(1000, 8, 8)
    assert longest_context(resolved("h200", tp_size=8), sizes) == 999
    reserving = resolved("h200", tp_size=8, disaggregation_mode="decode")
    assert longest_context(reserving, sizes) == 1000 - max(reserving.decode_reserve, 1)
    assert longest_context(resolved("h200", tp_size=8, context_length=500), sizes) == 500


@pytest.mark.parametrize(
    ("release", "groups", "flags", "largest"),
    [
        ("0.5.21", 1, {}, 4096),
        ("0.5.21", 1, {"cuda_graph_max_bs_prefill": 1024}, 1024),
        ("0.5.23", 8, {}, 1024),
        ("0.5.23", 8, {"cuda_graph_max_bs_prefill": 2048}, 2048),
        ("0.5.23", 8, {"cuda_graph_bs_prefill": [256, 2048]}, 1024),
    ],
)
def test_the_largest_prefill_graph_of_the_user_s_choice_stays(
    release: str, groups: int, flags: dict[str, object], largest: int
) -> None:
    """arg_groups/cuda_graph_hook.py:430-455 at 0.5.21 widens, arg_groups/parallel_hook.py:333-367 at 0.5.23 clamps to
    the chunk of a group (8192 / 8): neither a size that was given. Given batches are no largest size.
    """
    flags = {"tp_size": 8, "cuda_graph_backend_prefill": "breakable", "chunked_prefill_size": 8192, **flags}
    if groups > 1:
        flags |= {"dp_size": groups, "enable_dp_attention": True}
    assert resolved("h200", release, **flags).prefill_graph_max_bs == largest


PAGED = {
    "flashmla": (True, False, True),
    "trtllm_mla": (True, False, True),
    "cutedsl_mla": (True, True, True),
    "trtllm_mha": (True, True, True),
    "tokenspeed_mla": (True, False, True),
    "hpc_ops": (True, True, True),
    "intel_xpu": (True, True, True),
}
PAGE = "attention kernels with a page of their own"


@pytest.mark.parametrize("kernel", PAGED)
@pytest.mark.parametrize(
    ("position", "flag"),
    [(0, "attention_backend"), (1, "prefill_attention_backend"), (2, "decode_attention_backend")],
)
def test_kernels_that_change_the_page(kernel: str, position: int, flag: str) -> None:
    """Which flags each kernel's own page is asked of: the engine's own resolution leaves the page, or changes it
    (arg_groups/overrides.py:1144-1200, :1312-1326 at 0.5.23).
    """
    try:
        resolved("b200", "0.5.23", tp_size=4, **{flag: kernel})
        said = ""
    except RefusedError as error:
        said = str(error)
    assert (PAGE in said) == PAGED[kernel][position], said


def test_a_draft_s_kernels_that_change_the_page() -> None:
    """Of trtllm_mha alone the engine's own resolution changes it; and never that of an index that is not pooled."""
    flags = {"tp_size": 4, "speculative_algorithm": "EAGLE"}
    with pytest.raises(RefusedError, match=PAGE):
        resolved("b200", "0.5.23", speculative_draft_attention_backend="trtllm_mha", **flags)
    for kernel in ("intel_xpu", "fa3", "flashmla"):
        resolved("b200", "0.5.23", speculative_draft_attention_backend=kernel, **flags)
    for kpool in (1, 2):
        geometry = replace(bundled_geometry(), index_kpool=kpool)
        given = {"tp_size": 4, "attention_backend": "trtllm_mha"}
        try:
            found = resolve(given, geometry=geometry, profile=load_profile("0.5.23"), gpu=find_gpu("b200")).page_size
        except RefusedError as error:
            assert PAGE in str(error)
            found = None
        assert found == (64 if kpool == 1 else None)


MI455X = Gpu("MI455X", 442368, "rocm", (12, 5), False, "a stand-in")
LORA: dict[str, object] = {"lora_paths": ["a=b"], "lora_backend": "triton_v2"}


# Cards that the engine's resolution was not run for, and flags that no launch command gives.
@pytest.mark.parametrize(
    ("card", "release", "flags", "refused"),
    [
        (A100, "0.5.21", {"attention_backend": "trtllm_mha"}, "need a Hopper or Blackwell GPU"),
        (A100, "0.5.21", {"attention_backend": "flashinfer"}, None),
        (A100, "0.5.23", {"moe_a2a_backend": "megamoe"}, "needs a Hopper or a data-centre Blackwell GPU"),
        (MI300X, "0.5.21", {"attention_backend": "trtllm_mha"}, "need a Hopper or Blackwell GPU"),
        (MI300X, "0.5.23", {"moe_a2a_backend": "megamoe"}, None),
        (MI455X, "0.5.21", {"attention_backend": "trtllm_mha"}, "need a Hopper or Blackwell GPU"),
        (MI300X, "0.5.23", LORA, "or on ROCm"),
        (MI300X, "0.5.23", {"moe_a2a_backend": "megamoe", "quantization": "modelopt_fp4"}, None),
        ("b200", "0.5.23", {"mamba_backend": "flashinfer"}, "this model's states are KDA's"),
        ("b200", "0.5.23", {"enable_dp_attention": True, "dp_size": 2, **LORA}, "not with attention DP"),
        ("b200", "0.5.23", {"enable_dp_attention": True, "dp_size": 2, "enable_lora": False, **LORA}, None),
    ],
)
def test_start_up_checks_of_cards_and_kernels_without_a_record(
    card: Gpu | str, release: str, flags: dict[str, object], refused: str | None
) -> None:
    """arg_groups/attention_hook.py:203-225, arg_groups/mega_moe_hook.py:43, arg_groups/mamba_hook.py:70,
    arg_groups/lora_hook.py:30 at 0.5.23.
    """
    if refused is None:
        resolved(card, release, {"SGLANG_USE_AITER": "1"}, tp_size=4, **flags)
    else:
        with pytest.raises(RefusedError, match=refused):
            resolved(card, release, {"SGLANG_USE_AITER": "1"}, tp_size=4, **flags)


@pytest.mark.parametrize(
    ("release", "starts"), [("0.5.20", True), ("0.5.21", False), ("0.5.22", True), ("0.5.23", True)]
)
def test_a_host_receive_threshold_of_one_is_off_since_0_5_22(release: str, starts: bool) -> None:
    """Before, any above 0 keeps retracted requests in a host pool, which no model with state has.

    arg_groups/pd_disaggregation_hook.py:57-69, mem_cache/registry.py:158-160 at 0.5.21; :68-80 at 0.5.23.
    """
    flags = {"tp_size": 8, "disaggregation_mode": "decode", "disaggregation_decode_host_receive_threshold": 1.0}
    if release == "0.5.20":
        flags.pop("disaggregation_decode_host_receive_threshold")  # not in that release
    if starts:
        resolved("h200", release, **flags)
    else:
        with pytest.raises(RefusedError, match="host_pool retraction"):
            resolved("h200", release, **flags)


# What the engine's resolution says on a CPU, a draft model at hand.
@pytest.mark.parametrize("release", ["0.5.20", "0.5.21", "0.5.22", "0.5.23"])
@pytest.mark.parametrize("kernels", ["triton", "fa3", "flashinfer"])
@pytest.mark.parametrize("algorithm", ["EAGLE", "EAGLE3", "DFLASH", "STANDALONE"])
def test_one_buffer_speculates_with_more_since_0_5_22(algorithm: str, kernels: str, release: str) -> None:
    flags = {"tp_size": 8, "enable_unified_memory": True, "attention_backend": kernels}
    flags |= {"speculative_algorithm": algorithm, "speculative_draft_model_path": "/draft"}
    if algorithm != "STANDALONE" and release >= "0.5.22":
        resolved("h200", release, **flags)
    else:
        with pytest.raises(RefusedError, match="--enable-unified-memory speculates with DSPARK"):
            resolved("h200", release, **flags)


# The engine's own resolution of eight cards of so many MiB, 0.5.20 and 0.5.23 alike (arg_groups/memory_hook.py:87-267).
@pytest.mark.parametrize(
    ("mib", "chunk", "batch"),
    [
        (20_479, 2048, 8), (20_480, 4096, 160), (35_839, 4096, 160), (35_840, 4096, 160),
        (61_439, 4096, 160), (61_440, 8192, 512), (163_839, 8192, 512), (163_840, 16384, 512),
    ],
)  # fmt: skip
@pytest.mark.parametrize("release", ["0.5.20", "0.5.23"])
def test_a_card_s_class_begins_at_whole_gib(mib: int, chunk: int, batch: int, release: str) -> None:
    card = replace(find_gpu("h200"), memory_mib=mib)
    found = resolve({"tp_size": 8}, geometry=bundled_geometry(), profile=load_profile(release), gpu=card)
    assert (found.chunked_prefill_size, found.decode_graph_max_bs) == (chunk, batch)


@pytest.mark.parametrize("phase", ["decode", "prefill"])
def test_graphs_that_a_release_has_no_more(phase: str) -> None:
    """Also where the configuration names them: model_executor/cuda_graph_config.py:185 at 0.5.23."""
    config = {phase: {"backend": "tc_piecewise"}}
    with pytest.raises(RefusedError, match="tc_piecewise CUDA graphs were removed"):
        resolved(release="0.5.23", tp_size=8, cuda_graph_config=config)


def test_dspark_verifies_at_least_two_tokens() -> None:
    """arg_groups/speculative_hook.py:845 at 0.5.23."""
    flags = {"speculative_algorithm": "DSPARK", "speculative_draft_model_path": "/draft"}
    with pytest.raises(RefusedError, match="DSPARK verifies at least two tokens at once"):
        resolved("b200", "0.5.23", **flags, speculative_num_draft_tokens=1)
    assert resolved("b200", "0.5.23", **flags, speculative_num_draft_tokens=2).speculative_num_draft_tokens == 2


LONG = {"SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN": "1"}
DRAFTED: dict[str, object] = {"speculative_algorithm": "EAGLE"}
SPARSE = "this model's sparse attention is dsa"
CONTEXT: dict[str, object] = {
    **{"enable_prefill_cp": True, "cp_strategy": "interleave", "disaggregation_mode": "prefill"},
}


@pytest.mark.parametrize(
    ("gpu", "environment", "flags", "words"),
    [
        ("h200", LONG, {"context_length": 1_048_577}, "--context-length 1048577 is above"),
        ("h200", LONG, {"context_length": 1_048_576}, None),
        ("h200", {}, {"attention_backend": "triton"}, SPARSE),
        ("h200", {}, {"attention_backend": "nsa", "decode_attention_backend": "triton"}, SPARSE),
        ("h200", {}, {"attention_backend": "dsa", "prefill_attention_backend": "nsa"}, None),
        (MI300X, {}, {}, "pages of 1 token"),
        ("b200", {}, {"linear_attn_prefill_backend": "flashinfer"}, "needs CUDA 13 on Blackwell"),
        ("h200", {}, {"linear_attn_prefill_backend": "flashinfer"}, None),
        ("b200", {}, {"linear_attn_prefill_backend": "helion"}, None),
        ("h200", {}, {"enable_int8_mamba_checkpoint": True}, "the engine's budget does not charge"),
        ("h200", {"SGLANG_MAMBA_CONV_DTYPE": "half"}, {}, "SGLANG_MAMBA_CONV_DTYPE='half' is no dtype"),
        ("h200", {"SGLANG_MAMBA_CONV_DTYPE": "float16"}, {}, None),
        ("h200", {"SGLANG_MAMBA_SSM_DTYPE": "half"}, {}, "SGLANG_MAMBA_SSM_DTYPE='half' is no dtype"),
        ("h200", {"SGLANG_MAMBA_SSM_DTYPE": "half"}, {"mamba_ssm_dtype": "float16"}, None),
        ("h200", {}, {"speculative_num_draft_tokens": 4}, "without --speculative-algorithm"),
        ("h200", {}, {"speculative_adaptive": True, "speculative_adaptive_config": "x", **DRAFTED}, "is not read"),
        ("h200", {}, {"speculative_adaptive": True, **DRAFTED}, None),
        ("h200", {}, {"enable_unified_memory": True, "attention_backend": "triton"}, "not wired for this model"),
        ("h200", {}, {"enable_dsa_cache_layer_split": True, **CONTEXT}, "not this hybrid model's pools"),
        ("gb10", {}, {}, "flashinfer_sparse_mla"),
        ("gb10", {}, {"kv_cache_dtype": "bfloat16"}, "people run it with tilelang, in builds"),
    ],
)
def test_what_a_launch_is_warned_of(
    gpu: Gpu | str, environment: dict[str, str], flags: dict[str, object], words: str | None
) -> None:
    found = [note for note in resolved(gpu, "0.5.21", environment, tp_size=4, **flags).warnings]
    assert any(words in note for note in found) if words else not found, found


def test_kernels_that_a_card_has_not() -> None:
    """SM120 runs those that builds of its own bring; FP8 index kernels need Hopper."""
    for card, missing in (("gb10", True), (A100, True), ("h200", False), ("b200", False)):
        assert resolved(card, tp_size=4).kernels_missing is missing
    tilelang = {"dsa_prefill_backend": "tilelang", "dsa_decode_backend": "tilelang", "kv_cache_dtype": "bfloat16"}
    assert not resolved("gb10", tp_size=4, **tilelang).kernels_missing
    assert resolved("gb10", tp_size=4, **{**tilelang, "dsa_decode_backend": "fa3"}).kernels_missing


@pytest.mark.parametrize(
    ("fields", "card", "refused"),
    [
        ({"index_head_dim": 64}, "h200", "takes keys of 128 elements"),
        ({"index_kpool": 1}, MI300X, None),
        ({"index_kpool": 2}, MI300X, "cannot hold an index group of 2"),
        ({"num_nextn_predict_layers": 0}, "h200", "and this one has 0"),
        ({"num_nextn_predict_layers": 2}, "h200", "and this one has 2"),
    ],
)
def test_checkpoints_of_other_shapes(fields: dict[str, int], card: Gpu | str, refused: str | None) -> None:
    """mem_cache/memory_pool.py:5346, :5331 and models/glm5_next.py:1682-1691 at 0.5.23."""
    gpu = find_gpu(card) if isinstance(card, str) else card
    site = (replace(bundled_geometry(), **fields), load_profile("0.5.23"))
    try:
        resolve({"tp_size": 4, **DRAFTED}, geometry=site[0], profile=site[1], gpu=gpu)
        assert refused is None
    except RefusedError as error:
        assert refused is not None and refused in str(error)
    if "num_nextn_predict_layers" in fields:  # a draft of its own is another matter, and so is none
        resolve({"tp_size": 4}, geometry=site[0], profile=site[1], gpu=gpu)
        resolve(
            {"tp_size": 4, "speculative_draft_model_path": "/draft", **DRAFTED},
            geometry=site[0],
            profile=site[1],
            gpu=gpu,
        )


@pytest.mark.parametrize(
    ("environment", "flags", "flag", "words"),
    [
        ({}, {"mamba_ssm_dtype": "bfloat16"}, "mamba_ssm_dtype", "--mamba-ssm-dtype, handed on"),
        ({"SGLANG_MAMBA_SSM_DTYPE": "bfloat16"}, {}, "mamba_ssm_dtype", "SGLANG_MAMBA_SSM_DTYPE"),
        ({}, {}, "mamba_ssm_dtype", "the engine's default"),
        ({}, {}, "mamba_conv_dtype", "the engine's default"),
        ({"SGLANG_MAMBA_CONV_DTYPE": "float16"}, {}, "mamba_conv_dtype", "SGLANG_MAMBA_CONV_DTYPE"),
        ({}, {"disable_radix_cache": True}, "mamba_radix_cache_strategy", "stays unresolved"),
        ({}, {}, "decode_graph", "the engine's default"),
        ({}, {"cuda_graph_backend_decode": "full"}, "decode_graph", "given"),
        ({}, {"enable_dp_attention": True, "dp_size": 2}, "enable_dp_attention", "attention runs in 2 groups"),
        ({}, {"dwdp_size": 4}, "moe_a2a_backend", "--dwdp-size fetches"),
        ({}, {"moe_a2a_backend": "ascend_tp"}, "moe_a2a_backend", "no exchange of its own"),
        ({}, {"chunked_prefill_size": 4096}, "prefill_graph_max_bs", "the engine's default"),
        ({}, DRAFTED, "speculative_num_draft_tokens", "the engine's choice for this model"),
        ({}, DRAFTED, "speculative_num_steps", "the engine's choice for this model"),
        ({}, DRAFTED, "speculative_eagle_topk", "the engine's choice for this model"),
    ],
)
def test_why_a_choice_is_what_it_is(
    environment: dict[str, str], flags: dict[str, object], flag: str, words: str
) -> None:
    found = resolved("h200", "0.5.23", environment, tp_size=4, **flags)
    reasons = {choice.flag: choice.reason for choice in found.choices}
    assert words in reasons[flag]


RING: dict[str, object] = {"enable_linear_replayssm_spec": True}
BLOCKS: dict[str, object] = {"speculative_draft_model_path": "/draft", "speculative_num_draft_tokens": 9}


@pytest.mark.parametrize(
    ("gpu", "release", "flags", "refused"),
    [
        (MI300X, "0.5.21", {"mamba_radix_cache_strategy": "no_buffer"}, "no_buffer needs --disable-overlap-schedule"),
        (MI300X, "0.5.21", {"mamba_radix_cache_strategy": "no_buffer", "disable_overlap_schedule": True}, None),
        (
            MI300X,
            "0.5.21",
            {
                **{"mamba_radix_cache_strategy": "no_buffer", "disable_overlap_schedule": True},
                "enable_linear_replayssm": True,
            },
            None,
        ),
        (MI300X, "0.5.21", {"enable_prefill_cp": True, "cp_strategy": "interleave"}, "not on ROCm"),
        (MI300X, "0.5.21", {"mm_feature_transport": "cuda_ipc"}, "runs on CUDA only"),
        ("h200", "0.5.20", {**RING, **BLOCKS, "speculative_algorithm": "DFLASH"}, "does not run with DFLASH"),
        ("h200", "0.5.20", {**RING, **BLOCKS, "speculative_algorithm": "DSPARK"}, "does not run with DSPARK"),
        ("h200", "0.5.20", {**RING, **DRAFTED}, None),
        ("h200", "0.5.23", {**RING, **DRAFTED, "linear_replayssm_cache_len": 12}, "12 is no power of two"),
        ("h200", "0.5.23", {**RING, **DRAFTED, "linear_replayssm_cache_len": 4}, "is under twice the 4 draft tokens"),
        ("h200", "0.5.23", {**RING, **DRAFTED, "linear_replayssm_cache_len": 8}, None),
        ("h200", "0.5.23", {"tp_size": 3}, "heads do not divide over 3 ranks"),
        ("h200", "0.5.23", {"cuda_graph_config": {"prefill": {"max_bs": (1 << 32) + 1}}}, "whole numbers above 0"),
        ("h200", "0.5.23", {"cuda_graph_config": {"prefill": {"max_bs": 1 << 32}}}, None),
        ("h200", "0.5.23", {"pp_size": 2, **BLOCKS, "speculative_algorithm": "DFLASH"}, "without pipeline stages only"),
        ("h200", "0.5.23", {"pp_size": 2, **BLOCKS, "speculative_algorithm": "DSPARK"}, "on a PD prefill server only"),
        ("h200", "0.5.23", {"speculative_algorithm": "NGRAM"}, "NGRAM speculation drafts 10 branches"),
        ("h200", "0.5.23", {"speculative_num_steps": 3, **DRAFTED}, "without --speculative-eagle-topk"),
    ],
)
def test_refusals_that_come_after_the_engine_s_resolution_or_on_rocm(
    gpu: Gpu | str, release: str, flags: dict[str, object], refused: str | None
) -> None:
    """mem_cache/memory_pool.py:819-831, configs/mamba_utils.py:347-350 and what each refusal cites."""
    flags = {"tp_size": 4, **flags}
    if refused is None:
        resolved(gpu, release, **flags)
    else:
        with pytest.raises(KvplanError, match=refused):
            resolved(gpu, release, **flags)


def test_aiter_takes_its_workspace_of_long_contexts() -> None:
    """arg_groups/attention_hook.py:246-272 at 0.5.23."""
    honour = {"SGLANG_AITER_HONOR_EXPLICIT_MEM_FRACTION": "1"}

    def fraction(environment: dict[str, str], context: int, **flags: object) -> float | None:
        flags |= {"tp_size": 8, "context_length": context, "attention_backend": "aiter"}
        return resolved(MI300X, "0.5.21", environment, **flags).mem_fraction_static

    whole = fraction({}, 8192)
    assert whole is not None
    assert fraction({}, 8193) == fraction(honour, 8193) == pytest.approx(whole * 0.85)
    assert fraction({}, 8193, mem_fraction_static=0.8) == pytest.approx(0.68)
    assert fraction(honour, 8193, mem_fraction_static=0.8) == fraction({}, 8192, mem_fraction_static=0.8) == 0.8


@pytest.mark.parametrize(
    ("environment", "flags", "mib"),
    [
        ({}, {}, 100),
        ({"SGLANG_USE_CUDA_IPC_TRANSPORT": "1"}, {}, 1124),
        ({"SGLANG_USE_CUDA_IPC_TRANSPORT": "1"}, {"mm_feature_transport": "cpu"}, 100),
        ({}, {"mm_feature_transport": "cuda_vmm"}, 1124),
        ({"SGLANG_USE_CUDA_IPC_TRANSPORT": "1"}, {"encoder_only": True, "nnodes": 2}, 100),
    ],
)
def test_what_image_features_reserve(environment: dict[str, str], flags: dict[str, object], mib: int) -> None:
    """mem_cache/kv_cache_configurator.py:202-219 at 0.5.23."""
    found = resolved("h200", "0.5.23", environment, tp_size=8, **flags)
    reasons = {choice.flag: choice.reason for choice in found.choices}
    assert found.mm_reserve_mib == mib
    assert ("features stay on the GPU" in reasons["mm_reserve_mib"]) == (mib > 100)


@pytest.mark.parametrize(
    ("flags", "adaptive", "drafts"),
    [
        ({**DRAFTED}, True, 8),
        ({"enable_multi_layer_eagle": True, **DRAFTED}, False, 4),
        ({"enable_two_batch_overlap": True, "moe_a2a_backend": "deepep", **DRAFTED}, False, 4),
        ({"enable_dp_attention": True, "dp_size": 2, **DRAFTED}, False, 4),
        ({"enable_pdmux": True, "chunked_prefill_size": -1, "disable_overlap_schedule": True, **DRAFTED}, False, 4),
        ({"speculative_num_draft_tokens": 3}, True, 8),
    ],
)
def test_adaptive_steps_run_beside_little(flags: dict[str, object], adaptive: bool, drafts: int) -> None:
    """speculative/adaptive_spec_params.py:57-104, speculative/spec_info.py:268-289 at 0.5.23."""
    found = resolved("h200", "0.5.23", tp_size=8, speculative_adaptive=True, **flags)
    assert (found.speculative_adaptive, found.max_draft_tokens) == (adaptive, drafts)


def test_pages_of_one_token_take_branches() -> None:
    """arg_groups/speculative_hook.py:1273-1282, mem_cache/kv_cache_configurator.py:3299-3300 at 0.5.23."""
    branches = {"speculative_num_steps": 3, "speculative_eagle_topk": 2, **DRAFTED}
    assert resolved(MI300X, "0.5.21", speculative_num_draft_tokens=5, **branches).speculative_num_draft_tokens == 5
    with pytest.raises(RefusedError, match="needs --speculative-num-draft-tokens"):
        resolved(MI300X, "0.5.21", **branches)
    with pytest.raises(RefusedError, match="takes top-k 1"):
        resolved("h200", "0.5.21", speculative_num_draft_tokens=5, **branches)


def test_a_chunk_of_broken_pages_says_whose_it_is() -> None:
    with pytest.raises(RefusedError, match=r"^--chunked-prefill-size 100 is no multiple of the 64-token page"):
        resolved("h200", "0.5.21", tp_size=8, chunked_prefill_size=100)
    with pytest.raises(RefusedError, match=r"size 50 \(100 over 2 attention groups\) is no multiple"):
        resolved("h200", "0.5.21", tp_size=8, dp_size=2, enable_dp_attention=True, chunked_prefill_size=100)


@pytest.mark.parametrize("dispatch", ["nvfp4", "mxfp8"])
def test_a_dispatch_format_is_not_held_against_experts_that_nobody_read(dispatch: str) -> None:
    """The same flags start over an NVFP4 checkpoint (tests/data/start_checks.jsonl.gz); here config.json is on the
    server alone.
    """
    words = "--tp-size 8 --dp-size 8 --enable-dp-attention --moe-a2a-backend flashinfer --moe-runner-backend"
    launch = f"sglang serve /models/glm {words} flashinfer_trtllm --flashinfer-a2a-dispatch-type {dispatch}"
    assert plan(launch=launch, gpu="b200", engine="0.5.23").deployment.moe_a2a_backend == "flashinfer"
    with pytest.raises(RefusedError, match="dispatch"):  # the published checkpoint is FP8
        plan(launch=launch.replace("/models/glm", "zai-org/GLM-5.3-Flash"), gpu="b200", engine="0.5.23")


def test_a_default_ratio_says_whether_it_is_lowered_at_start_up() -> None:
    """arg_groups/hicache_hook.py:100-126 at 0.5.23: an explicit size or ratio switches the lowering off."""

    def reason(**flags: object) -> str:
        choices = plan({"tp_size": 8, "enable_hierarchical_cache": True, **flags}, gpu="h200", engine="0.5.23").choices
        return next(choice.reason for choice in choices if choice.flag == "hicache_ratio")

    assert "lowered at start-up" in reason()
    assert "lowered" not in reason(hicache_size=10) and "lowered" not in reason(hicache_ratio=2.0)
