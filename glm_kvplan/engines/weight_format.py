"""How the checkpoint's weights are stored, as far as flags, config or name give it away."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from glm_kvplan.launch.model_name import base_name
from glm_kvplan.model.checkpoints import ROLES as _ROLES
from glm_kvplan.model.checkpoints import spell
from glm_kvplan.model.quantized_modules import exclude_list, modules_of, names, packed_roles

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
UNREAD = "unread"  # in place of a method: there was no config.json to name one
# Checkpoints whose name says less than is known of them: what they are by their own config or by what they weigh.
_PUBLISHED = {
    "nvidia/glm-5.3-flash-nvfp4": "nvfp4",
    "radixark/glm-5.3-flash-nvfp4": "nvfp4-mlp",
    "libertaidai/glm-5.3-flash-nvfp4": "nvfp4-mtp",
    "redhatai/glm-5.3-flash-nvfp4": "nvfp4-fp8",
}
_IN_NAMES = (
    ("w4a16.*fp8", "w4a16-fp8"),
    ("w4a16", "w4a16"),
    ("nvfp4", "nvfp4"),
    ("mxfp4", "mxfp4"),
    ("mxfp8", "mxfp8"),
    ("awq|gptq|int4|autoround", "w4a16"),
    ("w4afp8", "w4afp8"),
    ("int8|w8a8", "int8"),
    ("fp8", "fp8"),
    ("bf16|bfloat16", "bf16"),
    ("fp4", "nvfp4"),
)


# What quant_algo (MXFP8 is no FP8: layers/modelopt_utils.py:23-45 at 0.5.23) and compressed-tensors say, then the
# bits and the type of a group's weights, then words that say less than those.
_FP_FORMATS = (("mxfp4", "mxfp4"), ("mxfp8", "mxfp8"), ("fp4", "nvfp4"))
_BITS = {(4, "int"): "w4a16", (8, "int"): "int8", (4, "float"): "nvfp4", (8, "float"): "fp8"}
_PLAIN_FORMATS = (
    ("pack-quantized", "w4a16"),
    ("w4a16-awq", "w4a16"),
    ("int-quantized", "int8"),
    ("fp8", "fp8"),
    ("float-quantized", "fp8"),
)


class WeightFormat(NamedTuple):
    """A format (one of CHECKPOINTS or a spelling of one, mxfp8, w4afp8, int8, or the method's own name) and how it is
    known.
    """

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
    published = _published(model)
    if declared is not None:
        method = declared.get("quant_method", "?")
        plain = _of_config(declared)
        found = _detailed(plain, declared)
        if found == plain and published is not None and published.startswith(plain):
            found = published  # the config has no list of modules, but the checkpoint is a known one
        return WeightFormat(found, f"quantization_config: {method}")
    method = flags.get("quantization")
    if published is not None and (not isinstance(method, str) or published.startswith(_METHODS.get(method, ""))):
        return WeightFormat(published, f"the checkpoint {model!r}")
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


def _published(model: str | None) -> str | None:
    """The format of a checkpoint that is known by its owner and name, also from a folder of a Hub cache."""
    if not model:
        return None
    parts = [part for part in model.replace("\\", "/").lower().split("/") if part]
    cached = next(
        (part.removeprefix("models--").replace("--", "/") for part in parts if part.startswith("models--")), None
    )
    return _PUBLISHED.get(cached or "/".join(parts[-2:]))


def _detailed(plain: str, declared: Mapping[str, Any]) -> str:
    """The format with the modules that the config leaves out or lists, where it says."""
    listed = declared.get("quantized_layers")
    if isinstance(listed, Mapping):
        return _of_lists(listed)
    groups = _groups(declared)
    several = len(groups) > 1
    excluded = exclude_list(declared)
    if plain not in ("nvfp4", "w4a16", "mxfp4") or (excluded is None and not several):
        return plain
    family = plain
    if plain == "nvfp4" and str(declared.get("quant_method", "")).lower() == "compressed-tensors":
        family = "nvfp4-ct"
    sides = []
    for draft in (False, True):
        packed = packed_roles(excluded or (), draft)
        side = dict.fromkeys(packed, family)
        if several:
            side = {role: found for role in packed if (found := _of_groups(groups, role, draft)) is not None}
        sides.append(side)
    if not sides[0]:
        return plain
    return spell(*sides)


_ALGORITHMS = (("NVFP4", "nvfp4"), ("W4A16", "w4a16"), ("MXFP4", "mxfp4"), ("FP8", "fp8"))


def _of_lists(listed: Mapping[str, Any]) -> str:
    """ModelOpt's mixed precision: each quantized module with its algorithm."""
    sides: list[dict[str, str]] = []
    for draft in (False, True):
        side = {}
        for role in _ROLES:
            for module in modules_of(role, draft):
                entry = next(
                    (value for name, value in listed.items() if isinstance(name, str) and names(name, module)), None
                )
                algorithm = str(entry.get("quant_algo", "")).upper() if isinstance(entry, Mapping) else ""
                family = next((family for word, family in _ALGORITHMS if word in algorithm), None)
                if family is not None:
                    side[role] = family
        sides.append(side)
    return spell(*sides) if sides[0] else "modelopt_mixed"


def _of_groups(groups: Mapping[str, Any], role: str, draft: bool) -> str | None:
    """compressed-tensors: the family of the group whose targets name the role's modules, else all linears."""
    linear = None
    for group in groups.values():
        if not isinstance(group, Mapping) or not isinstance(group.get("targets"), list):
            continue
        family = _of_weights(group.get("weights"))
        targets = [target for target in group["targets"] if isinstance(target, str)]
        if any(names(target, module) for target in targets for module in modules_of(role, draft)):
            return family
        if "Linear" in targets:
            linear = family
    return linear


def _of_weights(weights: object) -> str | None:
    if not isinstance(weights, Mapping):
        return None
    bits, kind, size = weights.get("num_bits"), weights.get("type"), weights.get("group_size")
    if bits == 4 and kind == "float":
        return "nvfp4-ct" if size == 16 else "mxfp4"
    if bits == 4:
        return "w4a16"
    return "fp8" if bits == 8 and kind == "float" else None


def quantization_method(config: Mapping[str, Any] | None) -> str | None:
    """The method that config.json names for its weights ("fp8"); None where it names none, or is not known."""
    declared = _quantization_config(config) if config is not None else None
    method = declared.get("quant_method") if declared is not None else None
    return method.lower() if isinstance(method, str) else None


def kernel_method(config: Mapping[str, Any] | None) -> str | None:
    """The same as kernels are chosen by: ModelOpt's checkpoints by their algorithm; UNREAD where there is no config.

    Source: configs/model_config.py:1838-1897 at 0.5.23.
    """
    if config is None:
        return UNREAD
    named, declared = quantization_method(config), _quantization_config(config)
    if declared is None or named not in (None, "modelopt"):
        return named
    algorithm, listed = str(declared.get("quant_algo") or ""), declared.get("quantized_layers")  # exactly so
    if algorithm == "MIXED_PRECISION":
        layers = listed.values() if isinstance(listed, Mapping) else ()
        algorithms = {str(each.get("quant_algo")).upper() for each in layers if isinstance(each, Mapping)}
        return "w4afp8" if algorithms.isdisjoint(("NVFP4", "W4A16_NVFP4")) else "modelopt_mixed"
    if "FP4" in algorithm:
        return "modelopt_fp4"
    return {"FP8": "modelopt_fp8", "MXFP8": "mxfp8"}.get(algorithm, named)


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
    if method.startswith("modelopt") or method in ("compressed-tensors", "quark", ""):
        inner = str(declared.get("quant_algo") or declared.get("format") or "").lower().replace("_", "-")
        weights = (group.get("weights") for group in _groups(declared).values() if isinstance(group, Mapping))
        bits = {(each.get("num_bits"), each.get("type")) for each in weights if isinstance(each, Mapping)}
        said = (
            *(found for word, found in _FP_FORMATS if word in inner),
            *(found for stored, found in _BITS.items() if stored in bits),
            *(found for word, found in _PLAIN_FORMATS if word in inner),
        )
        if said:
            return said[0]
    return _METHODS.get(method, method or "unknown")


def _groups(declared: Mapping[str, Any]) -> Mapping[str, Any]:
    groups = declared.get("config_groups")
    return groups if isinstance(groups, Mapping) else {}
