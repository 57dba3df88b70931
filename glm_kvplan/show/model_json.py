"""`kvplan model --json` (a field's meaning never changes within a schema version)."""

from typing import Any

from glm_kvplan import __version__
from glm_kvplan.engines.sglang.components.index_keys import key_bytes
from glm_kvplan.engines.sglang.components.latent_kv import row_bytes
from glm_kvplan.engines.sglang.profile import load_profile
from glm_kvplan.model.loader import Model


def document(model: Model) -> dict[str, Any]:
    """The geometry with 0-based layer ids, widths in elements and rows in bytes.

    `latent_row.bytes` is one token in one full-attention layer, by row layout; `index_key.bytes` one key of one layer
    before pooling; `state.*_shape` one KDA layer of one slot, not sharded. `vision` is null without a vision tower,
    its `num_hidden_layers` null where the config has no such key.
    """
    geometry, profile = model.geometry, load_profile()
    vision = geometry.vision
    return {
        "schema": "glm-kvplan/model",
        "schema_version": 1,
        "kvplan": __version__,
        "model": {"name": model.name, "origin": model.origin},
        "layers": {
            "count": geometry.num_hidden_layers,
            "full_attention": list(geometry.full_attention_layers),
            "index": list(geometry.index_layers),
            "linear_attention": list(geometry.linear_attention_layers),
            "num_nextn_predict_layers": geometry.num_nextn_predict_layers,
        },
        "latent_row": {
            "kv_lora_rank": geometry.kv_lora_rank,
            "qk_rope_head_dim": geometry.qk_rope_head_dim,
            "width": geometry.latent_width,
            "bytes": {
                "bf16": row_bytes(geometry, "bf16", profile),
                "fp8_scaled": row_bytes(geometry, "fp8_scaled", profile),
                "fp8_raw": row_bytes(geometry, "fp8_raw", profile),
            },
        },
        "index_key": {
            "index_head_dim": geometry.index_head_dim,
            "bytes": key_bytes(geometry),
            "index_topk": geometry.index_topk,
            "index_kpool": geometry.index_kpool,
            "index_kpool_compress": geometry.index_kpool_compress,
        },
        "state": {
            "num_heads": geometry.linear_num_heads,
            "head_dim": geometry.linear_head_dim,
            "short_conv_kernel_size": geometry.short_conv_kernel_size,
            "conv_shape": list(geometry.conv_state_shape),
            "temporal_shape": list(geometry.temporal_state_shape),
        },
        "num_attention_heads": geometry.num_attention_heads,
        "max_position_embeddings": geometry.max_position_embeddings,
        "vision": None
        if vision is None
        else {"hidden_size": vision.hidden_size, "num_hidden_layers": vision.num_hidden_layers},
        "notes": list(model.warnings),
    }
