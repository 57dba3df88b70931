"""What the checkpoint is, and what its rows weigh in each layout: the answer of `kvplan info model`."""

from collections.abc import Mapping
from typing import NamedTuple

from glm_kvplan import __version__
from glm_kvplan.engines.answer_head import ModelName
from glm_kvplan.engines.sglang.components.index_keys import key_bytes
from glm_kvplan.engines.sglang.components.latent_kv import row_bytes
from glm_kvplan.engines.sglang.profile import load_profile
from glm_kvplan.model.geometry import VisionGeometry
from glm_kvplan.model.loader import Model
from glm_kvplan.show.said import Text


class LayersShown(NamedTuple):
    """Ids from 0."""

    count: int  # type: ignore[assignment]  # not tuple.count
    full_attention: tuple[int, ...]
    index: tuple[int, ...]  # type: ignore[assignment]  # not tuple.index
    linear_attention: tuple[int, ...]
    num_nextn_predict_layers: int


class LatentRowShown(NamedTuple):
    """`bytes` of one token in one full-attention layer, by row layout."""

    kv_lora_rank: int
    qk_rope_head_dim: int
    width: int
    nbytes: Mapping[str, int]


class IndexKeyShown(NamedTuple):
    """`bytes` of one key of one layer before pooling."""

    index_head_dim: int
    nbytes: int
    index_topk: int
    index_kpool: int
    index_kpool_compress: bool


class StateShown(NamedTuple):
    """One KDA layer of one slot, not sharded."""

    num_heads: int
    head_dim: int
    short_conv_kernel_size: int
    conv_shape: tuple[int, ...]
    temporal_shape: tuple[int, ...]


class ModelAnswer(NamedTuple):
    kvplan: str
    model: ModelName
    layers: LayersShown
    latent_row: LatentRowShown
    index_key: IndexKeyShown
    state: StateShown
    num_attention_heads: int
    max_position_embeddings: int
    vision: VisionGeometry | None
    notes: tuple[Text, ...]


def answer_model(model: Model) -> ModelAnswer:
    geometry, profile = model.geometry, load_profile()
    return ModelAnswer(
        kvplan=__version__,
        model=ModelName(model.name, model.origin),
        layers=LayersShown(
            geometry.num_hidden_layers,
            geometry.full_attention_layers,
            geometry.index_layers,
            geometry.linear_attention_layers,
            geometry.num_nextn_predict_layers,
        ),
        latent_row=LatentRowShown(
            geometry.kv_lora_rank,
            geometry.qk_rope_head_dim,
            geometry.latent_width,
            {layout: row_bytes(geometry, layout, profile) for layout in ("bf16", "fp8_scaled", "fp8_raw")},
        ),
        index_key=IndexKeyShown(
            geometry.index_head_dim,
            key_bytes(geometry),
            geometry.index_topk,
            geometry.index_kpool,
            geometry.index_kpool_compress,
        ),
        state=StateShown(
            geometry.linear_num_heads,
            geometry.linear_head_dim,
            geometry.short_conv_kernel_size,
            geometry.conv_state_shape,
            geometry.temporal_state_shape,
        ),
        num_attention_heads=geometry.num_attention_heads,
        max_position_embeddings=geometry.max_position_embeddings,
        vision=geometry.vision,
        notes=model.warnings,
    )
