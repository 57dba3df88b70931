"""How the checkpoint's weights are stored, as far as flags, config or name give it away."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from glm_kvplan.launch.model_name import base_name

# What --quantization and quantization_config.quant_method say, by the engine's names.
_METHODS = {
    "fp8": "fp8",
    "modelopt_fp8": "fp8",
    "w8a8_fp8": "fp8",
    "mxfp8": "mxfp8",
    "modelopt_fp4": "nvfp4",
    "nvfp4_online": "nvfp4",
    "petit_nvfp4": "nvfp4",
    "mxfp4": "mxfp4",
    "quark_mxfp4": "mxfp4",
    "w4afp8": "w4afp8",
    "awq": "w4a16",
    "awq_marlin": "w4a16",
    "gptq": "w4a16",
    "gptq_marlin": "w4a16",
    "moe_wna16": "w4a16",
    "auto-round": "w4a16",
    "w8a8_int8": "int8",
    "auto-round-int8": "int8",
    "unquant": "bf16",
}
_IN_NAMES = (
    ("nvfp4", "nvfp4"),
    ("mxfp4", "mxfp4"),
    ("mxfp8", "mxfp8"),
    ("w4a16|awq|gptq|int4|autoround", "w4a16"),
    ("w4afp8", "w4afp8"),
    ("int8|w8a8", "int8"),
    ("fp8", "fp8"),
    ("bf16|bfloat16", "bf16"),
    ("fp4", "nvfp4"),
)


class WeightFormat(NamedTuple):
    """A format (fp8, bf16, nvfp4, mxfp4, mxfp8, w4a16, w4afp8, int8, or the method's own name) and how it is known."""

    format: str
    reason: str
    assumed: bool = False


def weight_format(
    flags: Mapping[str, object], config: Mapping[str, Any] | None = None, model: str | None = None
) -> WeightFormat:
    """The weight format: what config.json says, else --quantization, else the model's name, else the published FP8.

    The config wins over the flag because the flag says how weights are run, not how they are stored.
    """
    declared = _quantization_config(config) if config is not None else None
    if declared is not None:
        return WeightFormat(_of_config(declared), f"quantization_config: {declared.get('quant_method', '?')}")
    method = flags.get("quantization")
    if isinstance(method, str) and method in _METHODS:
        return WeightFormat(_METHODS[method], f"--quantization {method}")
    name = re.sub(r"[-_. ]", "", base_name(model)) if model else ""
    for pattern, found in _IN_NAMES:
        if re.search(pattern, name):
            return WeightFormat(found, f"the name {base_name(model or '')!r}")
    if isinstance(method, str):  # a container of several formats: modelopt, compressed-tensors, quark
        return WeightFormat(method, f"--quantization {method}")
    if config is not None:
        return WeightFormat("bf16", "config.json has no quantization_config")
    return WeightFormat("fp8", "assumed: the published checkpoint's format", True)


def _quantization_config(config: Mapping[str, Any]) -> Mapping[str, Any] | None:
    text = config.get("text_config")
    for holder in (config, text if isinstance(text, Mapping) else {}):
        for key in ("quantization_config", "compression_config"):
            declared = holder.get(key)
            if isinstance(declared, Mapping):
                return declared
    return None


def _of_config(declared: Mapping[str, Any]) -> str:
    """ModelOpt and compressed-tensors keep the format below the method's name."""
    method = str(declared.get("quant_method", "")).lower()
    inner = str(declared.get("quant_algo") or declared.get("format") or "").lower().replace("_", "-")
    if method.startswith("modelopt") or method in ("compressed-tensors", "quark", ""):
        groups = declared.get("config_groups")
        weights = [
            group.get("weights") or {}
            for group in (groups.values() if isinstance(groups, Mapping) else ())
            if isinstance(group, Mapping)
        ]
        if "nvfp4" in inner or inner == "w4a16-nvfp4":
            return "nvfp4"
        if "mxfp4" in inner:
            return "mxfp4"
        bits = {(w.get("num_bits"), w.get("type")) for w in weights if isinstance(w, Mapping)}
        if (4, "int") in bits or inner in ("pack-quantized", "w4a16-awq"):
            return "w4a16"
        if (8, "int") in bits or "int-quantized" in inner:
            return "int8"
        if (4, "float") in bits:
            return "nvfp4"
        if (8, "float") in bits or "fp8" in inner or "float-quantized" in inner:
            return "fp8"
    return _METHODS.get(method, method or "unknown")
