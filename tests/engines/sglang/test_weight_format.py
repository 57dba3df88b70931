"""The weight format as published checkpoints declare it: exclude lists, groups, lists of layers, names."""

import time
from typing import Any

import pytest

import glm_kvplan as kv
from glm_kvplan.engines.weight_format import UNREAD, kernel_method, quantization_method, weight_format
from glm_kvplan.model.checkpoints import find_checkpoint
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


def grouped(kind: str, bits: int, size: int = 16, **more: Any) -> dict[str, Any]:
    weights = {"num_bits": bits, "type": kind, "group_size": size}
    return {"config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}}, **more}


# ModelOpt's algorithms (layers/modelopt_utils.py at 0.5.23: an exact list) and compressed-tensors' formats.
@pytest.mark.parametrize(
    ("method", "more", "expected"),
    [
        ("modelopt", {"quant_algo": "FP8"}, "fp8"),
        ("modelopt", {"quant_algo": "FP8_PB_WO"}, "fp8"),
        ("modelopt", {"quant_algo": "MXFP8"}, "mxfp8"),
        ("modelopt", {"quant_algo": "FP4"}, "nvfp4"),
        ("modelopt_fp4", {"quant_algo": "NVFP4_AWQ"}, "nvfp4"),
        ("modelopt", {"quant_algo": "W4A16_NVFP4"}, "nvfp4"),
        ("modelopt", {"quant_algo": "W4A16_AWQ"}, "w4a16"),
        ("modelopt_fp4", {}, "nvfp4"),
        ("modelopt_fp8", {"quant_algo": None}, "fp8"),
        ("MODELOPT", {"quant_algo": "nvfp4"}, "nvfp4"),
        ("compressed-tensors", {"format": "nvfp4-pack-quantized"}, "nvfp4"),
        ("compressed-tensors", {"format": "mxfp4-pack-quantized"}, "mxfp4"),
        ("compressed-tensors", {"format": "mxfp8-quantized"}, "mxfp8"),
        ("compressed-tensors", {"format": "pack-quantized"}, "w4a16"),
        ("compressed-tensors", grouped("int", 4, 128, format="pack-quantized"), "w4a16"),
        ("compressed-tensors", grouped("int", 8, 128, format="pack-quantized"), "int8"),
        ("compressed-tensors", grouped("int", 8, format="naive-quantized"), "int8"),
        ("compressed-tensors", grouped("float", 8, format="naive-quantized"), "fp8"),
        ("compressed-tensors", grouped("float", 4), "nvfp4"),
        ("compressed-tensors", grouped("int", 4), "w4a16"),
        ("compressed-tensors", {"format": "int-quantized"}, "int8"),
        ("compressed-tensors", {"format": "float-quantized"}, "fp8"),
        ("compressed-tensors", {"config_groups": {"group_0": {"weights": None}, "group_1": 7}}, "compressed-tensors"),
        ("compressed-tensors", {"config_groups": [grouped("int", 4)]}, "compressed-tensors"),
        ("quark", {"quant_algo": "MXFP4"}, "mxfp4"),
        ("", {"format": "pack-quantized"}, "w4a16"),
        ("", {}, "unknown"),
        ("fp8", grouped("int", 4, format="pack-quantized"), "fp8"),  # its own name says it all
        ("AWQ", {"bits": 4}, "w4a16"),
        ("newest", {"quant_algo": "FP8"}, "newest"),
    ],
)
def test_formats_below_the_method_s_name(method: str, more: dict[str, Any], expected: str) -> None:
    assert weight_format({}, declared(quant_method=method, **more)).format == expected


TWO_GROUPS = {"targets": ["re:.*experts.*"], "weights": GROUP_NVFP4}


@pytest.mark.parametrize(
    ("weights", "family"),
    [
        ({"num_bits": 4, "type": "float", "group_size": 16}, "nvfp4-ct"),
        ({"num_bits": 4, "type": "float", "group_size": 32}, "mxfp4"),
        ({"num_bits": 4, "type": "int", "group_size": 128}, "w4a16"),
        ({"num_bits": 8, "type": "float"}, "fp8"),
        ({"num_bits": 8, "type": "int"}, None),  # no size formula: as published
        (None, None),
    ],
)
def test_the_family_of_a_group_by_its_weights(weights: dict[str, Any] | None, family: str | None) -> None:
    groups = {
        "group_0": TWO_GROUPS,
        "group_1": {"targets": ["Linear"], "weights": weights},
        "group_2": {"targets": "Linear", "weights": GROUP_FP8},
        "group_3": "Linear",
    }
    config = declared(quant_method="compressed-tensors", format="nvfp4-pack-quantized", config_groups=groups)
    rest = {
        "nvfp4-ct": "nvfp4-ct:experts+shared+mlp+attn+kda/nvfp4-ct:experts+shared+attn",
        None: "nvfp4-ct:experts+shared",
    }
    expected = rest.get(family, f"nvfp4-ct:experts+shared,{family}:mlp+attn+kda/nvfp4-ct:experts+shared,{family}:attn")
    assert weight_format({}, config).format == expected


def test_lists_of_layers_by_algorithm() -> None:
    def of(**algorithms: object) -> str:
        listed = {f"model.language_model.layers.*.{name}": entry for name, entry in algorithms.items()}
        return weight_format({}, declared(quant_method="modelopt_mixed", quantized_layers=listed)).format

    assert of(mlp={"quant_algo": "W4A16_AWQ"}) == of(mlp={"quant_algo": "w4a16_awq"})
    assert of(mlp={"quant_algo": "W4A16_AWQ"}) == "w4a16:experts+shared+mlp"
    assert of(mlp={"quant_algo": "MXFP4"}) == "mxfp4:experts+shared+mlp"
    assert of(mlp={"quant_algo": "FP8"}) == "fp8:experts+shared+mlp"
    assert of(mlp={"quant_algo": "INT8"}) == of(mlp="FP8") == of() == "modelopt_mixed"
    layers = ",".join(map(str, range(3, 45)))  # the MTP layer is the 46th, and stands apart
    experts = {
        f"model.language_model.layers.{layer}.mlp.experts": {"quant_algo": "NVFP4"} for layer in layers.split(",")
    }
    config = declared(quant_method="modelopt_mixed", quantized_layers=experts)
    assert weight_format({}, config).format == "nvfp4-experts"


def test_places_of_the_config_and_how_sure_it_is() -> None:
    fp8 = {"quant_method": "FP8"}
    for key in ("quantization_config", "compression_config"):  # configs/model_config.py:1729-1745 at 0.5.23
        for config in ({key: fp8}, {"text_config": {key: fp8}}):
            assert weight_format({"quantization": "awq"}, config).format == "fp8"
            assert quantization_method(config) == "fp8"
            assert kernel_method(config) == "fp8"
    assert weight_format({}, {"text_config": "x"}) == ("bf16", "config.json has no quantization_config", False)
    assert weight_format({}) == ("fp8", "assumed: the published checkpoint's format", True)
    assert weight_format({"quantization": "quark"}, {}) == ("quark", "--quantization quark", False)
    assert weight_format({}, declared()).reason == "quantization_config: ?"
    assert quantization_method(None) is quantization_method({}) is quantization_method(declared(quant_method=4)) is None
    assert kernel_method(None) == UNREAD and kernel_method({}) is None


# configs/model_config.py:1838-1897 at 0.5.23
@pytest.mark.parametrize(
    ("algorithm", "layers", "kernels"),
    [
        ("NVFP4", None, "modelopt_fp4"),
        ("W4A16_NVFP4", None, "modelopt_fp4"),
        ("FP8", None, "modelopt_fp8"),
        ("MXFP8", None, "mxfp8"),
        ("nvfp4", None, "modelopt"),  # names are compared as they stand
        ("fp8", None, "modelopt"),
        ("mixed_precision", {"a": {"quant_algo": "NVFP4"}}, "modelopt"),
        (None, None, "modelopt"),
        ("MIXED_PRECISION", {"a": {"quant_algo": "FP8"}, "b": {"quant_algo": "W4A16_NVFP4"}}, "modelopt_mixed"),
        ("MIXED_PRECISION", {"a": {"quant_algo": "FP8"}, "b": 4}, "w4afp8"),
        ("MIXED_PRECISION", {"a": {"quant_algo": "NVFP4_AWQ"}}, "w4afp8"),
        ("MIXED_PRECISION", None, "w4afp8"),
    ],
)
def test_kernels_are_chosen_by_modelopts_algorithm(algorithm: str | None, layers: Any, kernels: str) -> None:
    config = declared(quant_method="modelopt", quant_algo=algorithm, quantized_layers=layers)
    assert kernel_method(config) == kernels
    assert kernel_method(declared(quant_method="quark", quant_algo=algorithm)) == "quark"


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("nvidia/GLM-5.3-Flash-NVFP4", "nvfp4"),
        ("RadixArk/GLM-5.3-Flash-NVFP4", "nvfp4-mlp"),
        ("/hub/models--RedHatAI--GLM-5.3-Flash-NVFP4/snapshots/abc", "nvfp4-fp8"),
        ("LibertAIDAI/GLM-5.3-Flash-NVFP4", "nvfp4-mtp"),
        ("D:\\models\\LibertAIDAI\\GLM-5.3-Flash-NVFP4", "nvfp4-mtp"),
        ("out/", "fp8"),
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


@pytest.mark.parametrize("served", [None, "zai-org/GLM-5.3-Flash"])
@pytest.mark.parametrize(("method", "draft"), [("modelopt_fp4", "bf16"), ("nvfp4_online", "nvfp4")])
def test_experts_that_the_engine_packs_while_it_loads_them(served: str | None, method: str, draft: str) -> None:
    """layers/quantization/nvfp4_online.py at 0.5.23: routed experts alone, over FP8 and BF16; all else stays as stored.
    models/deepseek_nextn.py:71-75 takes the method from the MTP layer, where it calls itself modelopt_fp4.
    """
    plain = kv.plan({"tp_size": 4}, gpu="b200", served=served)
    form = find_checkpoint(
        kv.plan({"tp_size": 4, "quantization": method}, gpu="b200", served=served).weight_format.format
    )
    stored = find_checkpoint(plain.weight_format.format)
    assert stored.name == "fp8" and form.family("experts", draft=False).name == "nvfp4"
    for role in ("shared", "mlp", "attn", "kda"):
        assert form.family(role, draft=False) == stored.family(role, draft=False)
    assert form.family("experts", draft=True).name == draft
    assert form.family("attn", draft=True).name == ("bf16" if draft == "bf16" else "fp8")


@pytest.mark.parametrize(("method", "packed"), [("modelopt_fp4", "nvfp4-experts"), ("nvfp4_online", "nvfp4-mtp")])
def test_experts_of_bf16_weights_are_packed_too(method: str, packed: str) -> None:
    for served in ("x/GLM-5.3-Flash-BF16", "/models/glm-5.3-flash-bf16"):
        assert kv.plan({"quantization": method}, gpu="b200", served=served).weight_format.format == packed
    fp8 = {"modelopt_fp4": "fp8-nvfp4", "nvfp4_online": "fp8-nvfp4-mtp"}[method]
    assert kv.plan({"quantization": method}, gpu="b200", served="x/GLM-5.3-Flash-FP8").weight_format.format == fp8


def test_packed_weights_are_not_packed_again() -> None:
    for served in ("nvidia/GLM-5.3-Flash-NVFP4", "/models/glm"):  # the second's config is on the server alone
        plan = kv.plan({"tp_size": 4, "quantization": "modelopt_fp4"}, gpu="b200", served=served)
        assert plan.weight_format.format == "nvfp4"


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
