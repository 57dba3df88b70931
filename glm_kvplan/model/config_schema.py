"""The shape of a config.json, checked strictly: an int is an int, never "45", 45.0, true or NaN.

Only the keys the planner reads; everything else passes. Imported only for configs that are not the bundled copy.
"""

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from glm_kvplan.errors import InputError
from glm_kvplan.model.checks import brief

# Generous bounds, so that an absurd size is an error here and not an absurd answer later.
MOST_LAYERS = 4096
WIDEST = 1 << 20

LayerId = Annotated[int, Field(ge=0, lt=MOST_LAYERS)]
Layers = Annotated[list[LayerId], Field(max_length=MOST_LAYERS)]
Names = Annotated[list[str], Field(max_length=MOST_LAYERS)]
Count = Annotated[int, Field(ge=1, le=WIDEST)]
Width = Annotated[int, Field(ge=0, le=WIDEST)]


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore")


class LinearAttention(_Part):
    full_attn_layers: Layers
    kda_layers: Layers
    num_heads: Count
    head_dim: Count
    short_conv_kernel_size: Count


class Text(_Part):
    num_hidden_layers: Annotated[int, Field(ge=1, le=MOST_LAYERS)]
    layer_types: Names
    linear_attn_config: LinearAttention
    kv_lora_rank: Count
    qk_rope_head_dim: Width
    index_head_dim: Count
    index_topk: Count
    index_kpool: Count
    index_kpool_compress: bool
    num_attention_heads: Count
    num_nextn_predict_layers: Annotated[int, Field(ge=0, le=MOST_LAYERS)]
    max_position_embeddings: Annotated[int, Field(ge=1, le=1 << 40)]
    # Absent from the published config; absent means that every full-attention layer has its own indexer.
    index_topk_freq: Count | None = None
    index_topk_pattern: Annotated[str, Field(max_length=MOST_LAYERS)] | None = None
    index_skip_topk_offset: Count | None = None


class Vision(_Part):
    hidden_size: Count
    num_hidden_layers: Count | None = None


class Whole(_Part):
    vision_config: Vision | None = None
    indexer_types: Names | None = None
    cli_factor: Count | None = None


def validate(config: Mapping[str, Any], text: Mapping[str, Any], origin: str) -> None:
    """Raise InputError for the first key of `config` (or of its text part) that is missing or wrong."""
    nested = config.get("text_config")
    try:
        Text.model_validate(text)
    except ValidationError as error:
        path = _first(error)
        lifted = nested is None or (path[0] in config and path[0] not in nested)
        raise InputError(_line(error, origin, "" if lifted else "text_config.")) from None
    try:
        Whole.model_validate(config)
    except ValidationError as error:
        raise InputError(_line(error, origin, "")) from None


def _first(error: ValidationError) -> tuple[int | str, ...]:
    return error.errors(include_url=False)[0]["loc"]


def _line(error: ValidationError, origin: str, prefix: str) -> str:
    first = error.errors(include_url=False)[0]
    name = prefix + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"])[1:]
    if first["type"] == "missing":
        return f"{origin}: {name} is missing; the planner has no default for it"
    wanted = _WANTED.get(first["type"]) or first["msg"].replace("Input should", "it must", 1)
    return f"{origin}: {name} is {_literal(first['input'])}; {wanted}"


def _literal(value: object) -> str:
    """`value` as config.json spells it, where Python spells it otherwise."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    return brief(value)


_WANTED = {
    "model_type": "it must be a JSON object",
    "list_type": "it must be a JSON array",
    "int_type": "it must be a whole number",
    "bool_type": "it must be true or false",
    "string_type": "it must be a string",
}
