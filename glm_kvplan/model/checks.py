"""What must agree inside one config before a number is computed from it."""

import reprlib
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from glm_kvplan.errors import InputError
from glm_kvplan.model.geometry import QUANT_BLOCK, SUPPORTED_ARCHITECTURE, Geometry

SUPPORTED_MODEL_TYPES = ("glm5_next", "glm5_next_text")
LINEAR, FULL = "linear_attention", "deepseek_sparse_attention"
KERNEL_PAGE = 64  # tokens of the engine's page before pooling (arg_groups/model_overrides/deepseek_v2.py:171 at 0.5.23)


def check_architecture(config: Mapping[str, Any], origin: str) -> None:
    """Refuse, by its name, every architecture but the one this package knows."""
    architectures, model_type = config.get("architectures"), config.get("model_type")
    if architectures is None and model_type is None:
        raise InputError(f"{origin}: architectures is missing; {_SUPPORTED}")
    if architectures is not None:
        first = architectures[0] if isinstance(architectures, list) and architectures else architectures
        if first != SUPPORTED_ARCHITECTURE:
            raise InputError(f"{origin}: architecture {brief(first)} is not supported; {_SUPPORTED}")
    if model_type is not None and model_type not in SUPPORTED_MODEL_TYPES:
        raise InputError(f"{origin}: model_type {brief(model_type)} is not supported; {_SUPPORTED}")


_SUPPORTED = f"this tool sizes {SUPPORTED_ARCHITECTURE} (model_type {SUPPORTED_MODEL_TYPES[0]}) only"


def check(geometry: Geometry, layer_types: Sequence[str], origin: str) -> None:
    """The cross-checks; the first that fails is one InputError."""
    try:
        _check_layers(geometry, layer_types)
        _check_widths(geometry)
    except InputError as error:
        raise InputError(f"{origin}: {error}") from None


def _check_layers(geometry: Geometry, layer_types: Sequence[str]) -> None:
    count = geometry.num_hidden_layers
    if len(layer_types) != count:
        raise InputError(f"layer_types names {len(layer_types)} layers, num_hidden_layers says {count}")
    for layer, kind in enumerate(layer_types):
        if kind not in (LINEAR, FULL):
            raise InputError(f"layer_types[{layer}] is {brief(kind)}; known kinds are {LINEAR} and {FULL}")
    full, linear = geometry.full_attention_layers, geometry.linear_attention_layers
    for name, layers, kind in (("full_attn_layers", full, FULL), ("kda_layers", linear, LINEAR)):
        if not layers:
            raise InputError(f"linear_attn_config.{name} is empty; this family has layers of both kinds")
        for layer in layers:
            if layer >= count:
                raise InputError(
                    f"linear_attn_config.{name} names layer {layer}; num_hidden_layers is {count}, so the last is "
                    f"{count - 1}"
                )
            if layer_types[layer] != kind:
                raise InputError(
                    f"layer {layer} is in linear_attn_config.{name}, but layer_types[{layer}] is {layer_types[layer]}"
                )
    layer, times = Counter(full + linear).most_common(1)[0]
    if times > 1:
        raise InputError(f"linear_attn_config names layer {layer} {times} times; each layer stands there once")
    missing = sorted(set(range(count)).difference(full, linear))
    if missing:
        raise InputError(
            f"layer {missing[0]} is in neither linear_attn_config.full_attn_layers nor linear_attn_config.kda_layers"
        )


def _check_widths(geometry: Geometry) -> None:
    for name in ("kv_lora_rank", "index_head_dim"):
        width = getattr(geometry, name)
        if width % QUANT_BLOCK:
            raise InputError(f"{name} is {width}; it must be a multiple of {QUANT_BLOCK}, the elements under one scale")
    pool = geometry.index_kpool
    if geometry.index_topk % pool:
        raise InputError(f"index_topk {geometry.index_topk} is not a multiple of index_kpool {pool}")
    if KERNEL_PAGE % pool:
        raise InputError(f"index_kpool {pool} does not divide the page of {KERNEL_PAGE} tokens")


def brief(value: object) -> str:
    """`value` as it would be written, cut short: one line whatever it is."""
    try:
        return _REPR.repr(value)
    except ValueError:  # Python refuses to write thousands of digits
        return "a number with too many digits"


_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = 80
_REPR.maxlevel = 2
