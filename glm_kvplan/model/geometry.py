"""What a checkpoint is: layer ids by kind, row widths and state shapes. From config.json only."""

from bisect import bisect_left
from dataclasses import dataclass

from glm_kvplan.kept import kept

SUPPORTED_ARCHITECTURE = "Glm5NextForConditionalGeneration"
# Elements under one FP32 scale, in latent rows and in index keys (mem_cache/memory_pool.py:5352 at 0.5.23).
QUANT_BLOCK = 128


@dataclass(frozen=True, slots=True)
class VisionGeometry:
    """The part of the vision tower that the engine's memory heuristic reads.

    `num_hidden_layers` is None when the config has no such key (the published one says `depth`).
    """

    hidden_size: int
    num_hidden_layers: int | None


@dataclass(frozen=True)
class Geometry:
    """One checkpoint of the family. Layer ids are 0-based, as in config.json, and ascend; widths are in elements."""

    num_hidden_layers: int
    full_attention_layers: tuple[int, ...]
    linear_attention_layers: tuple[int, ...]
    # The full-attention layers that own an index-K buffer; the others reuse the top-k of a layer before them.
    index_layers: tuple[int, ...]
    kv_lora_rank: int
    qk_rope_head_dim: int
    index_head_dim: int
    index_topk: int
    index_kpool: int
    index_kpool_compress: bool
    linear_num_heads: int
    linear_head_dim: int
    short_conv_kernel_size: int
    num_attention_heads: int
    num_nextn_predict_layers: int
    max_position_embeddings: int
    vision: VisionGeometry | None

    def __hash__(self) -> int:
        return self._hash

    @kept
    def _hash(self) -> int:
        """Of what tells checkpoints apart: much is kept by geometry, and layer ids take long to hash."""
        return hash((self.num_hidden_layers, self.kv_lora_rank, self.linear_num_heads, self.index_kpool))

    @kept
    def latent_width(self) -> int:
        """Elements of one MLA latent row: the compressed K/V and the RoPE part (0 wide in this model)."""
        return self.kv_lora_rank + self.qk_rope_head_dim

    @kept
    def conv_state_shape(self) -> tuple[int, int]:
        """(rows, channels) of one layer's convolution window, unsharded: q, k and v side by side.

        Source: configs/mamba_utils.py:324-369 at 0.5.23 (KimiLinearStateShape.create).
        """
        return (self.short_conv_kernel_size - 1, 3 * self.linear_num_heads * self.linear_head_dim)

    @kept
    def temporal_state_shape(self) -> tuple[int, int, int]:
        """(heads, head_dim, head_dim) of one layer's recurrent state, unsharded. Same source."""
        return (self.linear_num_heads, self.linear_head_dim, self.linear_head_dim)

    def layers_in(self, stage: range) -> tuple[int, int, int]:
        """How many full-attention layers, index buffers and KDA layers a pipeline stage holds."""
        if len(stage) == self.num_hidden_layers:  # no pipeline: nothing to count
            return len(self.full_attention_layers), len(self.index_layers), len(self.linear_attention_layers)
        return self.full_attention_in(stage), self.index_in(stage), self.linear_attention_in(stage)

    def full_attention_in(self, stage: range) -> int:
        """How many sparse full-attention layers a pipeline stage holds."""
        return _count(self.full_attention_layers, stage)

    def linear_attention_in(self, stage: range) -> int:
        """How many KDA layers a pipeline stage holds."""
        return _count(self.linear_attention_layers, stage)

    def index_in(self, stage: range) -> int:
        """How many full-attention layers with an index-K buffer of their own a pipeline stage holds."""
        return _count(self.index_layers, stage)


def _count(layers: tuple[int, ...], stage: range) -> int:
    """How many of the ascending `layers` lie in `stage`."""
    return bisect_left(layers, stage.stop) - bisect_left(layers, stage.start)
