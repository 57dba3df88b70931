"""Weight bytes against the tables of the reference study (GiB a rank, target + draft, two decimals)."""

import time

import pytest

from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.engines.sglang.weight_placement import placement
from glm_kvplan.errors import InputError, RefusedError
from glm_kvplan.memory.gpu import Gpu, find_gpu
from glm_kvplan.memory.weights import WeightEstimate
from glm_kvplan.memory.weights import estimate_weights as estimate_of
from glm_kvplan.model.checkpoints import CHECKPOINTS, ROLES, find_checkpoint, spell
from glm_kvplan.model.geometry import Geometry
from glm_kvplan.model.loader import bundled_geometry
from glm_kvplan.model.weight_manifest import MANIFEST, load_manifest
from glm_kvplan.units import GIB

GEOMETRY = bundled_geometry()
PUBLISHED_BYTES = 328_326_771_576


def deployment(tp: int, attn_dp: int = 1, **changes: object) -> Deployment:
    return Deployment(tp_size=tp, attn_dp_size=attn_dp, speculative_algorithm="EAGLE", **changes)  # type: ignore[arg-type]


def estimate_weights(
    geometry: Geometry,
    launched: Deployment,
    checkpoint: str,
    *,
    gpu: Gpu | None = None,
    **flags: object,
) -> WeightEstimate:
    return estimate_of(geometry, placement(geometry, launched.with_values(**flags), gpu), checkpoint)


def gib(launched: Deployment, checkpoint: str, **options: object) -> list[str]:
    estimate = estimate_weights(GEOMETRY, launched, checkpoint, **options)  # type: ignore[arg-type]
    return [
        f"{target / GIB:.2f} + {draft / GIB:.2f}" for target, draft in zip(estimate.target, estimate.draft, strict=True)
    ]


FP8 = {
    1: ("299.22 + 9.37", "299.22 + 9.37", "299.22 + 9.37"),
    2: ("149.91 + 4.73", "156.14 + 5.40", "156.63 + 5.41"),
    4: ("75.25 + 2.41", "84.60 + 3.41", "85.34 + 3.42"),
    8: ("37.93 + 1.25", "48.83 + 2.41", "49.69 + 2.43"),
}
NVFP4 = {
    1: ("177.55 + 6.54", "177.55 + 6.54", "177.55 + 6.54", "16.24"),
    2: ("89.12 + 3.32", "95.82 + 4.02", "96.81 + 4.05", "8.17"),
    4: ("44.90 + 1.70", "54.96 + 2.77", "56.43 + 2.80", "4.13"),
    8: ("22.79 + 0.90", "34.52 + 2.14", "36.25 + 2.18", "2.11"),
}
BF16 = {1: "585.09 + 16.24", 2: "292.88 + 8.17", 4: "146.78 + 4.13", 8: "73.73 + 2.11"}


@pytest.mark.parametrize("tp", FP8)
@pytest.mark.parametrize("expert_parallel", [False, True])
@pytest.mark.parametrize(("checkpoint", "table"), [("fp8", FP8), ("nvfp4-mtp", NVFP4)])
def test_tensor_and_attention_data_parallel(
    tp: int, expert_parallel: bool, checkpoint: str, table: dict[int, tuple[str, ...]]
) -> None:
    ep = tp if expert_parallel else 1
    assert gib(deployment(tp, ep_size=ep), checkpoint) == [table[tp][0]]
    assert gib(deployment(tp, tp, ep_size=ep), checkpoint) == [table[tp][1]]
    assert gib(deployment(tp, tp, ep_size=ep, moe_a2a_backend="deepep"), checkpoint) == [table[tp][2]]


@pytest.mark.parametrize("tp", NVFP4)
def test_bf16_draft_beside_nvfp4_experts(tp: int) -> None:
    target = NVFP4[tp][0].split(" + ")[0]
    assert gib(deployment(tp), "nvfp4-ct:experts/bf16") == [f"{target} + {NVFP4[tp][3]}"]


@pytest.mark.parametrize("tp", BF16)
def test_bf16(tp: int) -> None:
    assert gib(deployment(tp), "bf16") == [BF16[tp]]


@pytest.mark.parametrize(("pp", "stages"), [(2, ["34.41", "41.15"]), (4, ["15.02", "19.70", "19.70", "21.76"])])
def test_pipeline_stages(pp: int, stages: list[str]) -> None:
    found = gib(deployment(4, pp_size=pp), "fp8")
    assert [row.split(" + ")[0] for row in found] == stages
    # The draft runs on the last stage alone.
    assert [row.split(" + ")[1] for row in found] == ["0.00"] * (pp - 1) + ["2.41"]
    assert estimate_weights(GEOMETRY, deployment(4, pp_size=pp), "fp8").heaviest_stage == pp - 1


def test_vision_tower() -> None:
    plain = estimate_weights(GEOMETRY, deployment(4), "fp8").target[0]
    whole = estimate_weights(GEOMETRY, deployment(4), "fp8", mm_enable_dp_encoder=True).target[0]
    without = estimate_weights(GEOMETRY, deployment(4), "fp8", language_only=True).target[0]
    assert f"{(whole - plain) / GIB:+.2f}" == "+0.74"
    assert f"{(without - plain) / GIB:+.2f}" == "-0.31"
    assert estimate_weights(GEOMETRY, deployment(4, multimodal=False), "fp8").target[0] == without


def test_deep_gemm_experts_on_sm100() -> None:
    b200 = find_gpu("b200")
    launched = deployment(4, ep_size=4)
    assert gib(launched, "fp8", gpu=b200, moe_runner_backend="deep_gemm") == ["75.79 + 2.42"]
    plain = estimate_weights(GEOMETRY, launched, "fp8")
    default = estimate_weights(GEOMETRY, launched, "fp8", gpu=b200)
    assert 0 < default.target[0] - plain.target[0] <= 0.02 * GIB
    assert estimate_weights(GEOMETRY, launched, "fp8", gpu=find_gpu("h200")).target == plain.target


# What public boots printed: GiB of target and draft of one rank. The issue asks for 1 % of each, apart.
CUTLASS, MARLIN = {"moe_runner_backend": "flashinfer_cutlass"}, {"moe_runner_backend": "marlin"}
PRINTED = [
    ("nvfp4", 1, "gb300", {}, 176.97, 15.38),  # nvidia/GLM-5.3-Flash-NVFP4 on a DGX Station, 0.5.20
    ("nvfp4-mlp", 4, "b200", CUTLASS, 44.76, 3.81),  # RadixArk/GLM-5.3-Flash-NVFP4
    ("w4a16", 2, "rtxpro6000", {}, 84.71, 3.19),
    ("w4a16-fp8", 2, "rtxpro6000", {}, 81.51, 3.19),
    ("fp8", 8, "mi355x", {}, 38.02, None),
    ("nvfp4-mtp", 4, "rtxpro6000", MARLIN, 49.0, None),  # printed as about 49
]


@pytest.mark.parametrize(("checkpoint", "tp", "gpu", "flags", "target", "draft"), PRINTED)
def test_printed_weights(
    checkpoint: str, tp: int, gpu: str, flags: dict[str, object], target: float, draft: float | None
) -> None:
    estimate = estimate_weights(GEOMETRY, deployment(tp), checkpoint, gpu=find_gpu(gpu), **flags)
    assert estimate.target[0] / GIB == pytest.approx(target, rel=0.01)
    if draft is not None:
        assert estimate.draft[0] / GIB == pytest.approx(draft, rel=0.01)
        assert estimate.error_gib is not None
        missed = (estimate.target[0] + estimate.draft[0]) / GIB - (target + draft)
        assert abs(missed) <= estimate.error_gib


def test_printed_weights_with_the_experts_elsewhere() -> None:
    """15.79 GiB on one GPU where the routed experts live on the CPU."""
    groups = dict(estimate_weights(GEOMETRY, Deployment(), "fp8").target_groups[0])
    assert (sum(groups.values()) - groups["experts"]) / GIB == pytest.approx(15.79, rel=0.01)


def test_weights_that_pools_imply() -> None:
    """446 slots and 7,362,048 tokens of a B200 TP4 EP4 server mean 77.96 GiB of target and draft."""
    estimate = estimate_weights(GEOMETRY, deployment(4, ep_size=4), "fp8", gpu=find_gpu("b200"))
    assert (estimate.target[0] + estimate.draft[0]) / GIB == pytest.approx(77.96, rel=0.01)


def test_a_modelopt_draft_is_bf16_and_its_head_packed() -> None:
    """1.18 GiB of head, 4.5 of 16 bits: 0.85 GiB less than in BF16 at TP1."""
    plain = estimate_weights(GEOMETRY, deployment(1), "nvfp4-ct:experts+mlp/bf16")
    packed = estimate_weights(GEOMETRY, deployment(1), "nvfp4")
    head = 154_880 * 4096 * 2
    assert plain.draft[0] - packed.draft[0] == head - head * 4.5 / 16
    assert plain.target == packed.target
    assert plain.returned[0] - packed.returned[0] == head - head * 4.5 / 16


def test_known_formats_have_names() -> None:
    for name in CHECKPOINTS:
        form = find_checkpoint(name)
        assert form.name == name and form.evidence
        sides = [{role: form.family(role, draft).name for role in ROLES} for draft in (False, True)]
        assert spell(*sides) == name
    assert spell({"experts": "nvfp4", "kda": "fp8"}, {}) == "nvfp4:experts,fp8:kda/bf16"
    for wrong in ("gguf", "nvfp4:", "nvfp4:expert", "nvfp4:experts/", "nvfp4:experts//bf16", "fp8+bf16", ""):
        with pytest.raises(InputError, match="no size formula"):
            find_checkpoint(wrong)


def test_unmeasured_layouts_say_so() -> None:
    found = estimate_weights(GEOMETRY, deployment(4), "fp8").error_gib
    assert found == pytest.approx(75.25 * 0.004, abs=0.001)
    for launched in (deployment(8, 8), deployment(4, pp_size=2)):
        estimate = estimate_weights(GEOMETRY, launched, "fp8")
        assert estimate.error_gib is None
        assert "no public measurement" in estimate.notes[0]
    assert estimate_weights(GEOMETRY, deployment(4), "bf16").error_gib is None


def test_marlin_keeps_the_swizzled_scales_too() -> None:
    assert gib(deployment(4), "nvfp4:experts", moe_runner_backend="marlin") == ["49.33 + 1.81"]
    assert gib(deployment(4), "w4a16", moe_runner_backend="marlin") == gib(deployment(4), "w4a16")


def test_the_drafts_own_embedding_and_head_come_back() -> None:
    for tp in (1, 2, 4, 8):
        (returned,) = estimate_weights(GEOMETRY, deployment(tp), "fp8").returned
        assert returned == 2 * 154_880 * 4096 * 2 // tp
    without = estimate_weights(GEOMETRY, Deployment(tp_size=4), "fp8")
    assert without.draft == without.returned == (0,)


def test_groups_add_up() -> None:
    estimate = estimate_weights(GEOMETRY, deployment(4, pp_size=2), "nvfp4")
    for total, groups in zip(
        (*estimate.target, *estimate.draft), (*estimate.target_groups, *estimate.draft_groups), strict=True
    ):
        assert total == sum(nbytes for _, nbytes in groups)
    last = dict(estimate.target_groups[1])
    assert "lm_head" in last and "embed" not in last
    assert "embed" in dict(estimate.target_groups[0])


def test_the_manifest_is_the_published_checkpoint() -> None:
    import gzip
    import json

    kinds = json.loads(gzip.decompress(MANIFEST.read_bytes()))["kinds"]
    assert sum(kind["bytes_total"] for kind in kinds) == PUBLISHED_BYTES
    assert sum(kind["count"] for kind in kinds) == 76_108
    assert load_manifest().layers["moe"] == 42


def test_vocabulary_is_padded_where_the_ranks_do_not_divide_it() -> None:
    # 154880 = 2**8 * 605: six ranks pad it to a multiple of 384.
    estimate = estimate_weights(GEOMETRY, Deployment(tp_size=6, attn_dp_size=3), "bf16")
    assert dict(estimate.target_groups[0])["lm_head"] == 155_136 // 6 * 4096 * 2


def test_other_formats_and_models_need_the_weights_given() -> None:
    with pytest.raises(InputError, match="--weights-gib"):
        estimate_weights(GEOMETRY, deployment(4), "gguf")
    from dataclasses import replace

    with pytest.raises(InputError, match=r"index_kpool 8, not 4.*--weights-gib"):
        estimate_weights(replace(GEOMETRY, index_kpool=8), deployment(4), "fp8")
    fewer = replace(GEOMETRY, full_attention_layers=GEOMETRY.full_attention_layers[:-1])
    with pytest.raises(InputError, match="full_attention_layers"):
        estimate_weights(fewer, deployment(4), "fp8")
    draft = estimate_weights(GEOMETRY, Deployment(tp_size=4, speculative_algorithm="DFLASH"), "fp8")
    assert draft.draft == (0,) and "--draft-weights-gib" in draft.notes[-1]


def test_cost() -> None:
    load_manifest.cache_clear()
    start = time.process_time()
    estimate_weights(GEOMETRY, deployment(4, context_length=4096), "fp8")
    assert time.process_time() - start < 0.1  # about 2 ms
    launched = deployment(4)
    best = 1.0
    for _ in range(50):
        start = time.perf_counter()
        estimate_weights(GEOMETRY, launched, "fp8")
        best = min(best, time.perf_counter() - start)
    assert best < 50e-6


def test_a_scale_is_never_cut() -> None:
    """2,048 channels of the shared experts over 32 ranks are 64, half of what one FP8 scale is of; over 16 a whole."""
    assert estimate_weights(GEOMETRY, deployment(16), "fp8").target
    for ranks, of in ((32, "shared experts of 2048 channels into 64"), (64, "into ")):
        with pytest.raises(RefusedError, match=of):
            estimate_weights(GEOMETRY, deployment(ranks), "fp8")
        assert estimate_weights(GEOMETRY, deployment(ranks), "bf16").target
        assert estimate_weights(GEOMETRY, deployment(ranks), "nvfp4").target
