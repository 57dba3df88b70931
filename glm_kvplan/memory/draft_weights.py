"""Bytes that a draft model of its own takes on a rank as it loads: its weights and its RoPE table."""

from typing import NamedTuple

from glm_kvplan.memory.budget import MemoryPart
from glm_kvplan.model.draft import ITEM_BYTES, DraftModel
from glm_kvplan.units import GIB

ROPE_BYTES = 4  # fp32, cosines and sines of a position in head_dim elements
ROPE_ROWS = 128  # the table grows by so many positions
# Beside the RoPE table that is left unused: what both public boots of a DFLASH draft (one GB300) show, within 0.001.
LEFT_GIB, LEFT_ERROR_GIB = 0.0137, 0.01


class DraftBytes(NamedTuple):
    """Of one rank. `rope` is not sharded; `fused` is the copy of the K and V projections that DFLASH keeps, of plain
    weights only. Nobody derived what a quantized draft keeps plain: `weights` is the middle between all of its
    projections packed and none, and `error` the way to either end.
    """

    weights: int
    rope: int
    fused: int
    error: int = 0

    @property
    def groups(self) -> tuple[tuple[str, int], ...]:
        """What loads, by name."""
        return (("draft model", self.weights), ("draft RoPE table", self.rope))


def draft_bytes(draft: DraftModel, ranks: int) -> DraftBytes:
    """Bytes of a block draft's tensors on one of `ranks` that share its attention.

    Source: models/dflash.py:189-727, models/dspark.py at 0.5.23, built by the engine's own classes on 1 to 8 ranks;
    kernels/ops/speculative/fused_kv_materialize.py:328-331 at 0.5.23.
    """
    hidden, width, heads = draft.hidden_size, draft.head_dim, draft.attention_heads // ranks
    kv = draft.heads(ranks)
    projections = (heads + 2 * kv) * width * hidden + heads * width * hidden
    projections += 3 * (draft.intermediate_size // ranks) * hidden
    layer = projections + 2 * width + 2 * hidden
    if draft.attention_bias:
        layer += (heads + 2 * kv) * width + hidden
    if draft.conv_taps and draft.conv_group:
        taps = draft.conv_taps
        layer += 2 * (2 * taps * hidden + hidden * (2 * taps * hidden // draft.conv_group))
    total = draft.layers * layer + draft.target_features * hidden * hidden + 2 * hidden
    if draft.selector_rank:
        total += 2 * draft.vocabulary * draft.selector_rank + hidden * draft.selector_rank
    total += 2 * draft.vocabulary * draft.markov_rank
    item = ITEM_BYTES[draft.dtype]
    weights, rope = total * item, draft.max_position_embeddings * width * ROPE_BYTES
    fused = draft.layers * 2 * kv * width * hidden * item
    if draft.packed_bits is None:
        return DraftBytes(weights, rope, fused)
    linear = (draft.layers * projections + draft.target_features * hidden * hidden) * item
    error = int(linear * (1 - draft.packed_bits / 8 / item) / 2)
    return DraftBytes(weights - error, rope, 0, error)


def rope_growth(draft: DraftModel, positions: int) -> int:
    """Bytes the RoPE table grows by when it is laid out anew for `positions`.

    Source: utils/common.py:4999-5039 at 0.5.23 (reserve_rope_cache_for_long_sequences).
    """
    rows = -(-positions // ROPE_ROWS) * ROPE_ROWS
    return max(0, rows - draft.max_position_embeddings) * draft.head_dim * ROPE_BYTES


def left_behind(draft: DraftModel, ranks: int, positions: int) -> MemoryPart:
    """What a DFLASH draft takes between its "Load weight end" and the sizing.

    The old RoPE table's memory stays reserved: the smaller copy of the K and V projections is laid in it.
    """
    taken = draft_bytes(draft, ranks)
    table = max(taken.rope, taken.fused) if rope_growth(draft, positions) else taken.fused
    gib = (table + rope_growth(draft, positions)) / GIB + LEFT_GIB
    return MemoryPart(
        "draft's RoPE table and fused copy", -gib, LEFT_ERROR_GIB, "estimated",
        "both public boots with a DFLASH draft (GB300) sized with 0.513 to 0.514 GiB less than they printed",
    )  # fmt: skip
