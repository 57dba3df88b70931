"""The resolver's rules beyond the engine's recorded deployments: tables, switches, refusals, warnings and reasons."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.engines.sglang.profile import load_profile
from glm_kvplan.engines.sglang.resolve.resolver import resolve
from glm_kvplan.errors import InputError, RefusedError
from glm_kvplan.memory.gpu import Gpu, find_gpu
from glm_kvplan.model.geometry import VisionGeometry
from glm_kvplan.model.loader import bundled_geometry

MI300X = Gpu("MI300X", 196608, "rocm", (9, 4), False, "a stand-in")
A100 = Gpu("A100 80GB", 81920, "cuda", (8, 0), False, "a stand-in")


def resolved(gpu: str | Gpu = "h200", release: str = "0.5.21", environment: Any = None, **flags: object) -> Deployment:
    card = find_gpu(gpu) if isinstance(gpu, str) else gpu
    return resolve(
        flags, geometry=bundled_geometry(), profile=load_profile(release), gpu=card, environment=environment or {}
    )


# ENGINE_MODEL 1.2: GPU, dtype flag -> dtype, prefill and decode kernels, bytes of a row.
@pytest.mark.parametrize(
    ("gpu", "dtype", "expected"),
    [
        ("h200", None, ("bfloat16", "flashmla_sparse", "fa3", "bf16")),
        ("h200", "fp8_e4m3", ("fp8_e4m3", "flashmla_kv", "flashmla_kv", "fp8_scaled")),
        ("b200", None, ("fp8_e4m3", "trtllm", "trtllm", "fp8_raw")),
        ("b300", "bfloat16", ("bfloat16", "flashmla_sparse", "trtllm", "bf16")),
        ("rtxpro6000", None, ("fp8_e4m3", "trtllm", "trtllm", "fp8_raw")),
        ("gb10", None, ("fp8_e4m3", "trtllm", "trtllm", "fp8_raw")),
        (MI300X, None, ("bfloat16", "triton", "triton", "bf16")),
        (MI300X, "fp8_e4m3", ("fp8_e4m3", "triton", "triton", "fp8_raw")),
    ],
)
def test_kv_dtype_kernels_and_rows_by_gpu(gpu: str | Gpu, dtype: str | None, expected: tuple[str, ...]) -> None:
    d = resolved(gpu, kv_cache_dtype=dtype)
    assert (d.kv_cache_dtype, d.dsa_prefill_backend, d.dsa_decode_backend, d.kv_layout) == expected


# ENGINE_MODEL 1.6, the fractions after the vision factor: prefill graph off (0.5.21) and on (0.5.22).
FRACTIONS = {
    "h100": ((0.79325, 0.7752), (0.7828, 0.76475), (0.7771, 0.75905)),
    "rtxpro6000": ((0.81985, 0.80465), (0.8113, 0.7961), (0.8056, 0.79135)),
    "h200": ((0.86165, 0.8512), (0.855, 0.8455), (0.85215, 0.8417)),
    "b200": ((0.81415, 0.80655), (0.81225, 0.8037), (0.8094, 0.8018)),
    "b300": ((0.85975, 0.85405), (0.85785, 0.8531), (0.85595, 0.8512)),
}


@pytest.mark.parametrize("gpu", FRACTIONS)
@pytest.mark.parametrize(("width", "tp"), [(0, 1), (1, 4), (2, 8)])
def test_memory_fractions_of_the_table(gpu: str, width: int, tp: int) -> None:
    for release, expected in zip(("0.5.21", "0.5.22"), FRACTIONS[gpu][width], strict=True):
        assert resolved(gpu, release, tp_size=tp).mem_fraction_static == pytest.approx(expected, abs=1e-9)


# ENGINE_MODEL 6: H200, TP8, attention DP 8, 128 requests.
@pytest.mark.parametrize(
    ("role", "release", "expected"),
    [
        ("decode", "0.5.21", 0.833),
        ("decode", "0.5.22", 0.929),
        ("prefill", "0.5.21", 0.8588),
        ("prefill", "0.5.22", 0.84835),
    ],
)
def test_memory_fractions_of_the_roles(role: str, release: str, expected: float) -> None:
    flags = {"tp_size": 8, "dp_size": 8, "enable_dp_attention": True, "max_running_requests": 128}
    fraction = resolved("h200", release, **flags, disaggregation_mode=role).mem_fraction_static
    assert fraction == pytest.approx(expected, abs=1e-9)


def test_the_vision_tower_lowers_the_fraction_only_where_there_is_one() -> None:
    flags, profile, card = {"tp_size": 8}, load_profile("0.5.21"), find_gpu("h200")

    def fraction(vision: VisionGeometry | None) -> float:
        geometry = replace(bundled_geometry(), vision=vision)
        return resolve(flags, geometry=geometry, profile=profile, gpu=card).mem_fraction_static

    plain = fraction(None)
    assert plain == 0.897
    assert fraction(VisionGeometry(1024, None)) == plain * 0.95
    # Twice the tower lowers the factor by a tenth; the factor never leaves 0.8 to 1.05.
    assert fraction(VisionGeometry(1024, 48)) == pytest.approx(plain * 0.95 * 0.9)
    assert fraction(VisionGeometry(4096, 96)) == pytest.approx(plain * 0.95 * 0.8)


def test_switches_of_the_environment() -> None:
    assert resolved().mm_reserve_mib == 100
    ipc = {"SGLANG_USE_CUDA_IPC_TRANSPORT": "1"}
    assert resolved(environment=ipc).mm_reserve_mib == 1124
    sizes = {"SGLANG_VLM_CACHE_SIZE_MB": "0", "SGLANG_MM_FEATURE_CACHE_MB": "256"}
    assert resolved(environment=sizes, mm_feature_transport="cuda_ipc").mm_reserve_mib == 256
    assert resolved(environment=ipc, mm_feature_transport="cpu").mm_reserve_mib == 100
    dtypes = {"SGLANG_MAMBA_CONV_DTYPE": "float32", "SGLANG_MAMBA_SSM_DTYPE": "bfloat16"}
    d = resolved(environment=dtypes)
    assert (d.mamba_conv_dtype, d.mamba_ssm_dtype) == ("float32", "bfloat16")
    assert resolved(environment=dtypes, mamba_ssm_dtype="float16").mamba_ssm_dtype == "float16"
    unknown = resolved(environment={"SGLANG_MAMBA_CONV_DTYPE": "int4", "SGLANG_MAMBA_SSM_DTYPE": "int4"})
    assert (unknown.mamba_conv_dtype, unknown.mamba_ssm_dtype) == ("bfloat16", "float32")
    assert len(unknown.warnings) == 2
    assert resolved(environment={"SGLANG_OPT_MAMBA_SKIP_DECODE_LOCK": "true"}).slots_per_request == 4
    longer = {"SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN": "1"}
    assert resolved(environment=longer, context_length=2097152).context_length == 2097152
    with pytest.raises(InputError, match="SGLANG_VLM_CACHE_SIZE_MB"):
        resolved(environment={"SGLANG_VLM_CACHE_SIZE_MB": "-5"})
    # a word that is neither: the engine warns and takes the default (environ.py:66-90 at 0.5.23)
    neither = resolved(environment={"SGLANG_USE_CUDA_IPC_TRANSPORT": "maybe", "SGLANG_USE_AITER": "x"})
    assert [text.partition(" is ")[0] for text in neither.warnings] == [
        "SGLANG_USE_CUDA_IPC_TRANSPORT='maybe'",
        "SGLANG_USE_AITER='x'",
    ]
    assert neither.mem_fraction_static == resolved().mem_fraction_static


def test_pipeline_partition_and_speculation_over_stages() -> None:
    partition = {"SGLANG_PP_LAYER_PARTITION": "20,25"}
    assert resolved(environment=partition, tp_size=4, pp_size=2).pipeline_partition == (20, 25)
    assert resolved(environment=partition, tp_size=4).pipeline_partition is None
    for text in ("20,20", "45", "x,y", "50,-5", ""):
        with pytest.raises(InputError, match="SGLANG_PP_LAYER_PARTITION"):
            resolved(environment={"SGLANG_PP_LAYER_PARTITION": text}, tp_size=4, pp_size=2)
    eagle = {"tp_size": 4, "pp_size": 2, "speculative_algorithm": "NEXTN"}
    with pytest.raises(RefusedError, match="PD prefill"):
        resolved(**eagle)
    assert resolved(environment={"SGLANG_ENABLE_PP_SPEC": "1"}, **eagle).max_draft_tokens == 4
    assert resolved(disaggregation_mode="prefill", **eagle).max_draft_tokens == 4
    with pytest.raises(RefusedError):
        resolved(release="0.5.20", disaggregation_mode="prefill", **eagle)


def test_a_decode_server_takes_a_radix_cache_beside_eagle_only_in_the_newest_release() -> None:
    flags = {
        "tp_size": 4,
        "disaggregation_mode": "decode",
        "disaggregation_decode_enable_radix_cache": True,
        "speculative_algorithm": "EAGLE",
    }
    for release in ("0.5.20", "0.5.21", "0.5.22"):
        with pytest.raises(RefusedError):
            resolved(release=release, **flags)
    assert resolved(release="0.5.23", **flags).slots_per_request == 5


def test_the_row_layout_can_be_given_directly() -> None:
    d = resolved(kv_row_layout="fp8_scaled")
    assert (d.kv_cache_dtype, d.kv_layout) == ("fp8_e4m3", "fp8_scaled")
    assert resolved("b200", kv_row_layout="fp8_scaled").kv_layout == "fp8_scaled"
    assert resolved("b200", kv_row_layout="bf16", kv_cache_dtype="bf16").kv_cache_dtype == "bfloat16"
    for layout, dtype in (("fp8_scaled", "bfloat16"), ("fp8_raw", "bf16"), ("bf16", "fp8_e4m3")):
        with pytest.raises(InputError, match="--kv-row-layout"):
            resolved(kv_row_layout=layout, kv_cache_dtype=dtype)


def test_pools_that_are_not_wired_are_refused_or_warned_about() -> None:
    with pytest.raises(RefusedError, match="dcp-size"):
        resolved(release="0.5.22", tp_size=8, dcp_size=2)
    assert any("--dcp-size" in line for line in resolved(tp_size=8, dcp_size=2).warnings)
    for radix in (False, True):
        with pytest.raises(RefusedError, match="hybrid"):
            resolved(tp_size=8, enable_hisparse=True, disable_radix_cache=radix)
    with pytest.raises(RefusedError, match="unified"):
        resolved(enable_page_major_kv_layout=True)
    with pytest.raises(RefusedError, match=r"layer-split.*PD prefill"):
        resolved(enable_dsa_cache_layer_split=True)
    with pytest.raises(RefusedError, match="sharding"):
        resolved(release="0.5.22", enable_kv_cache_sharding=True)
    with pytest.raises(RefusedError, match="does not exist in"):
        resolved(attn_dp_size=2, tp_size=8)


def test_a_value_of_another_release_is_refused() -> None:
    """`--cuda-graph-backend-decode tc_piecewise` went with 0.5.22."""
    assert resolved(release="0.5.21", cuda_graph_backend_decode="tc_piecewise")
    with pytest.raises(RefusedError, match=r"tc_piecewise does not exist in .*0\.5\.22; it takes full, breakable"):
        resolved(release="0.5.22", cuda_graph_backend_decode="tc_piecewise")


def test_older_cards_are_warned_about_and_rocm_follows_its_own_page() -> None:
    old = resolved(A100, tp_size=8)
    assert old.kv_cache_dtype == "bfloat16"
    assert "compute capability 9.0" in old.warnings[0]
    tilelang = {"kv_cache_dtype": "fp8_e4m3", "dsa_prefill_backend": "tilelang", "dsa_decode_backend": "tilelang"}
    with pytest.raises(RefusedError, match=r"8\.9"):
        resolved(A100, "0.5.22", tp_size=8, **tilelang)
    assert resolved("h200", "0.5.22", tp_size=8, **tilelang).kv_layout == "fp8_raw"
    assert resolved(MI300X).page_size == 1
    aiter = {"SGLANG_USE_AITER": "1"}
    assert resolved(MI300X, environment=aiter).page_size == 64
    # the page asks the older reader, for which `yes` is no (layers/attention/dsa/utils.py:57 at 0.5.23)
    assert resolved(MI300X, environment={"SGLANG_USE_AITER": "True"}).page_size == 64
    assert resolved(MI300X, environment={"SGLANG_USE_AITER": "yes"}).page_size == 1
    assert resolved(MI300X, "0.5.22", environment=aiter).page_size == 256
    with pytest.raises(RefusedError, match="SGLANG_USE_AITER"):
        resolved(MI300X, "0.5.22")
    assert resolved(MI300X, "0.5.22", environment=aiter).prefill_graph == "disabled"
    assert resolved(MI300X, disable_overlap_schedule=True).mamba_radix_cache_strategy == "no_buffer"
    with pytest.raises(RefusedError, match="triton"):
        resolved("b200", dsa_prefill_backend="triton")


def test_draft_models_of_their_own() -> None:
    flags = {"tp_size": 2, "speculative_algorithm": "dflash", "speculative_draft_model_path": "someone/draft"}
    drafts = resolved("gb10", **flags)
    assert drafts.max_draft_tokens == 16
    assert drafts.max_running_requests == 48
    assert (
        len(drafts.warnings) == 3
        and "upper bound" in drafts.warnings[1]
        and "not built for compute capability 12.1" in drafts.warnings[0]
    )
    assert resolved("gb10", speculative_dflash_block_size=8, **flags).max_draft_tokens == 8
    with pytest.raises(RefusedError, match="draft-model-path"):
        resolved(speculative_algorithm="DFLASH")
    with pytest.raises(RefusedError, match="branches"):
        resolved(speculative_algorithm="NGRAM")
    with pytest.raises(InputError, match="not modelled"):
        resolved(speculative_algorithm="LOOKAHEAD")


def test_choices_say_what_was_decided_and_why() -> None:
    deployment = resolved("b200", "0.5.22", tp_size=8, dp_size=8, enable_dp_attention=True, page_size=1)
    choices = {choice.flag: choice for choice in deployment.choices}
    assert choices["tp_size"].given
    assert choices["page_size"] == ("page_size", 256, False, choices["page_size"].reason, choices["page_size"].source)
    assert "deepseek_v2.py" in choices["page_size"].source
    assert choices["kv_cache_dtype"].value == "fp8_e4m3"
    assert "B200" in choices["kv_cache_dtype"].reason
    assert choices["chunked_prefill_size"].value == 2048
    assert "16384 divided by 8" in choices["chunked_prefill_size"].reason
    assert choices["mamba_ssm_dtype"].value == "float32"
    assert "hicache_ratio" not in choices
    assert all(choice.reason and "{" not in choice.reason for choice in deployment.choices)
    assert len(choices) == len(deployment.choices)


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("tp_size", 0),
        ("tp_size", True),
        ("tp_size", "8"),
        ("tp_size", 8.0),
        ("max_total_tokens", -1),
        ("context_length", 1 << 60),
        ("chunked_prefill_size", -2),
        ("mem_fraction_static", float("nan")),
        ("mem_fraction_static", 1.5),
        ("mem_fraction_static", True),
        ("kv_cache_dtype", "int4"),
        ("kv_cache_dtype", 8),
        ("disable_radix_cache", "yes"),
        ("cuda_graph_bs_decode", [0]),
        ("cuda_graph_config", {"decode": {"max_bs": -1}}),
        ("cuda_graph_config", {"decode": 5}),
        ("tpsize", 8),
        ("kv_row_layout", "fp8"),
    ],
)
def test_values_that_cannot_be_meant_are_named(flag: str, value: object) -> None:
    with pytest.raises(InputError, match=flag.replace("_", ".")) as error:
        resolved(**{flag: value})
    assert "\n" not in str(error.value)


def test_a_flag_of_none_is_not_given() -> None:
    plain = resolved(tp_size=8)
    assert resolved(tp_size=8, kv_cache_dtype=None, max_running_requests=None) == plain


@pytest.mark.parametrize("gpu", ["rtxpro6000", "gb10", "rtx6000d"])
def test_sparse_kernels_that_are_not_built_for_the_card(gpu: str) -> None:
    """sglang issue 40286 on 0.5.20: it boots, sizes its pools and dies in its first forward."""
    (note,) = [note for note in resolved(gpu, tp_size=4).warnings if "trtllm" in note]
    assert "expect the model to fail on its first forward" in note
    assert "flashinfer_sparse_mla" in note and "fp8_padded" in note
    (note,) = [note for note in resolved(gpu, tp_size=4, kv_cache_dtype="bfloat16").warnings if "trtllm" in note]
    assert "people run it with tilelang" in note
    runs = dict.fromkeys(("dsa_prefill_backend", "dsa_decode_backend"), "flashinfer_sparse_mla")
    assert not [note for note in resolved(gpu, tp_size=4, **runs).warnings if "not built" in note]
    assert not [note for note in resolved("b200", tp_size=4).warnings if "not built" in note]


@pytest.mark.parametrize("side", ["dsa_prefill_backend", "dsa_decode_backend"])
def test_kernels_of_builds_of_their_own(side: str) -> None:
    """flash_mla_sm120.py:678-701 at 0.5.23, asked once the pools are there: another architecture alone, on SM12x."""
    notes = resolved("rtxpro6000", **{side: "flashinfer_sparse_mla"}).warnings
    assert [note for note in notes if "refuses it for this model" in note and "builds of their own" in note]
    for gpu in ("h200", "b200", "mi300x"):
        d = resolved(gpu, **{side: "flashinfer_sparse_mla"})
        assert d.kernels_missing and any("expect the server to die" in note for note in d.warnings)
    assert not resolved("h200").kernels_missing


def test_rows_of_656_bytes_are_a_layout() -> None:
    d = resolved("rtxpro6000", kv_row_layout="fp8_padded")
    assert (d.kv_cache_dtype, d.kv_layout, d.row_scales) == ("fp8_e4m3", "fp8_padded", True)


def test_a_refused_layout_names_the_profile_field_that_allows_it(tmp_path: Path) -> None:
    flags: dict[str, Any] = {
        **{"tp_size": 8, "dp_size": 8, "enable_dp_attention": True, "kv_cache_dtype": "fp8_e4m3"},
        **{"dsa_prefill_backend": "tilelang", "dsa_decode_backend": "tilelang"},
    }
    with pytest.raises(RefusedError, match=r'base = "0\.5\.20", tilelang_fp8_raw = true'):
        resolved("h20-3e", "0.5.20", **flags)
    profile = tmp_path / "mine.toml"
    profile.write_text('base = "0.5.20"\ntilelang_fp8_raw = true\n')
    assert resolved("h20-3e", str(profile), **flags).kv_layout == "fp8_raw"
    for engine, changes, field in (
        ("0.5.20", {"speculative_algorithm": "EAGLE", "pp_size": 2}, "pipeline_speculation = true"),
        ("0.5.22", {"dcp_size": 2, "tp_size": 2}, "decode_context_parallel_refused = false"),
    ):
        with pytest.raises(RefusedError, match=field):
            resolved("b200", engine, **changes)
