"""The weight format as published checkpoints declare it: exclude lists, groups, lists of layers, names."""

import time
from typing import Any

import pytest

from glm_kvplan.engines.weight_format import weight_format
from glm_kvplan.model.quantized_modules import names, packed_roles

# nvidia/GLM-5.3-Flash-NVFP4 leaves attention, shared experts, routers, embeddings, head and vision tower in BF16; its
# MTP layer is BF16 too, but on no list, and the engine builds it so.
NVIDIA = [
    "lm_head",
    "model.embed_tokens*",
    "model.visual*",
    *(f"model.language_model.layers.{layer}.self_attn*" for layer in range(45)),
    *(f"model.language_model.layers.{layer}.mlp.gate" for layer in range(3, 45)),
    *(f"model.language_model.layers.{layer}.mlp.shared_experts*" for layer in range(3, 45)),
]
EXPERTS_ONLY = [*NVIDIA, *(f"model.language_model.layers.{layer}.mlp" for layer in range(3)), "model.layers.45.*"]
MLP_ONLY = ["lm_head", "*self_attn*", "*.visual.*", "model.layers.45*", "model.language_model.layers.45*"]
GROUP_NVFP4 = {"num_bits": 4, "type": "float", "group_size": 16, "strategy": "tensor_group"}
GROUP_FP8 = {"num_bits": 8, "type": "float", "block_structure": [128, 128], "strategy": "block"}


def declared(**quantization: Any) -> dict[str, Any]:
    return {"quantization_config": quantization}


def modelopt(ignore: list[str]) -> dict[str, Any]:
    return declared(quant_method="modelopt", quant_algo="NVFP4", ignore=ignore)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        (modelopt([*NVIDIA, "model.layers.45*"]), "nvfp4"),
        (modelopt(EXPERTS_ONLY), "nvfp4-experts"),
        (modelopt(MLP_ONLY), "nvfp4-mlp"),
        (modelopt(["lm_head", "*mlp.shared_experts*", "*layers.[012].mlp*", "*layers.45*"]), "nvfp4-attention"),
        (modelopt(["*self_attn.q_proj", "*layers.45*", "re:.*shared.*"]), "nvfp4:experts+mlp+attn/bf16"),  # half of KDA
        (
            declared(
                quant_method="compressed-tensors",
                format="mixed-precision",
                config_groups={
                    "group_0": {"targets": ["re:.*layers\\.(?!45).*mlp\\.experts.*"], "weights": GROUP_NVFP4},
                    "group_1": {"targets": ["re:.*layers\\.45\\..*"], "weights": GROUP_FP8},
                },
                ignore=["lm_head"],
            ),
            "nvfp4-fp8",
        ),
        (
            declared(
                quant_method="compressed-tensors",
                format="nvfp4-pack-quantized",
                config_groups={"group_0": {"targets": ["Linear"], "weights": GROUP_NVFP4}},
                ignore=["re:.*self_attn.*", "re:.*shared_experts.*", "re:.*layers\\.[0-2]\\.mlp\\..*"],
            ),
            "nvfp4-ct:experts",
        ),
        (
            declared(
                quant_method="modelopt_mixed",
                quant_algo="MIXED_PRECISION",
                quantized_layers={
                    "model.language_model.layers.*.mlp.experts": {"quant_algo": "NVFP4"},
                    "model.language_model.layers.*.self_attn": {"quant_algo": "FP8_PB_WO"},
                },
            ),
            "nvfp4:experts,fp8:attn+kda",
        ),
        (modelopt(["*"]), "nvfp4"),  # nothing packed cannot be meant
        (modelopt([]), "nvfp4:experts+shared+mlp+attn+kda/nvfp4:experts+shared+attn"),
        (declared(quant_method="fp8", modules_to_not_convert=["lm_head"]), "fp8"),
    ],
)  # fmt: skip
def test_formats_by_config(config: dict[str, Any], expected: str) -> None:
    assert weight_format({}, config).format == expected


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("nvidia/GLM-5.3-Flash-NVFP4", "nvfp4"),
        ("RadixArk/GLM-5.3-Flash-NVFP4", "nvfp4-mlp"),
        ("/hub/models--RedHatAI--GLM-5.3-Flash-NVFP4/snapshots/abc", "nvfp4-fp8"),
        ("LibertAIDAI/GLM-5.3-Flash-NVFP4", "nvfp4-mtp"),
        ("/scratch/out/GLM-5.3-Flash-W4A16-NVFP4-K32-Experts-FP8-WO", "w4a16-fp8"),
        ("x/GLM-5.3-Flash-W4A16", "w4a16"),
    ],
)
def test_formats_by_name(model: str, expected: str) -> None:
    assert weight_format({}, None, model).format == expected
    assert weight_format({"quantization": "modelopt_fp4"}, None, "RadixArk/GLM-5.3-Flash-NVFP4").format == "nvfp4-mlp"
    assert weight_format({"quantization": "fp8"}, None, "RadixArk/GLM-5.3-Flash-NVFP4").format == "fp8"


def test_a_known_checkpoint_whose_config_lists_nothing() -> None:
    config = declared(quant_method="modelopt", quant_algo="NVFP4")
    assert weight_format({}, config, "RadixArk/GLM-5.3-Flash-NVFP4").format == "nvfp4-mlp"
    assert weight_format({}, config, "someone/GLM-5.3-Flash-NVFP4").format == "nvfp4"


MODULE = "model.language_model.layers.3.mlp.shared_experts.gate_proj"


@pytest.mark.parametrize(
    "pattern",
    [
        MODULE, "model.layers.3.mlp.shared_experts.gate_proj", "language_model.model.layers.3.mlp", "layers.3", "mlp",
        "*shared*", "re:.*shared_experts.*", "re:model", "re:layers",
        "model.language_model.layers.3.mlp.shared_experts*",
        "gate_proj", "*experts",
    ],
)  # fmt: skip
def test_patterns_that_name_a_module(pattern: str) -> None:
    assert names(pattern, MODULE)


@pytest.mark.parametrize(
    "pattern",
    ["", "gate", "lm_head", "model.layers.30", "re:gate", "re:(", "re:(a+)+$", "layers.3.self_attn", "re:" + "a?" * 99],
)  # fmt: skip
def test_patterns_that_do_not(pattern: str) -> None:
    assert not names(pattern, MODULE)


def test_hostile_lists_cost_little() -> None:
    start = time.process_time()
    hostile: list[object] = [
        "re:(.*)*x" + "a" * 300,
        "re:.*.*.*.*.*.*.*.*y",
        "*" * 300 + "z",
        None,
        7,
        ["x"],
        "q" * 10_000,
    ]
    assert packed_roles(hostile, draft=False) == {"experts", "shared", "mlp", "attn", "kda"}
    assert packed_roles([f"model.layers.{layer}.nothing" for layer in range(1509)], draft=True) == {
        "experts",
        "shared",
        "attn",
    }
    assert time.process_time() - start < 5
