"""Where the config.json comes from. (First cut: the bundled copy.)"""

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from glm_kvplan.model.geometry import Geometry, VisionGeometry

BUNDLED = Path(__file__).parent / "data" / "glm-5.3-flash.config.json"


def geometry_from_config(config: dict[str, Any]) -> Geometry:
    text = config.get("text_config", config)
    linear = text["linear_attn_config"]
    vision = config.get("vision_config")
    return Geometry(
        num_hidden_layers=text["num_hidden_layers"],
        full_attention_layers=tuple(linear["full_attn_layers"]),
        linear_attention_layers=tuple(linear["kda_layers"]),
        kv_lora_rank=text["kv_lora_rank"],
        qk_rope_head_dim=text["qk_rope_head_dim"],
        index_head_dim=text["index_head_dim"],
        index_topk=text["index_topk"],
        index_kpool=text["index_kpool"],
        index_kpool_compress=text["index_kpool_compress"],
        linear_num_heads=linear["num_heads"],
        linear_head_dim=linear["head_dim"],
        short_conv_kernel_size=linear["short_conv_kernel_size"],
        num_attention_heads=text["num_attention_heads"],
        num_nextn_predict_layers=text["num_nextn_predict_layers"],
        max_position_embeddings=text["max_position_embeddings"],
        vision=None
        if vision is None
        else VisionGeometry(vision["hidden_size"], vision.get("num_hidden_layers")),
    )


@lru_cache
def bundled_geometry() -> Geometry:
    """The geometry of the bundled copy of the published config."""
    return geometry_from_config(json.loads(BUNDLED.read_text(encoding="utf-8")))
