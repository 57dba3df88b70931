"""Allocated bytes against charged bytes: every byte of the difference has a name, and the rest is zero."""

from collections.abc import Iterator
from typing import NamedTuple

from glm_kvplan.engines.sglang.components import index_keys as indexer
from glm_kvplan.engines.sglang.components import kda_state, latent_kv, replay_ring
from glm_kvplan.engines.sglang.components import pool_units as counts
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.components.tensors import tensor_specs
from glm_kvplan.engines.sglang.rank import Rank
from glm_kvplan.engines.sglang.sizing.charges import charged_rows, charges
from glm_kvplan.engines.sglang.sizing.rank_costs import Costs, costs
from glm_kvplan.engines.tensor import device_bytes


class Part(NamedTuple):
    """One named share of the difference. Positive: allocated, not charged. Negative: charged, not allocated."""

    name: str
    nbytes: int
    reason: str


class Attribution(NamedTuple):
    """Device bytes of one rank: what is allocated, what the budget was charged, and what explains the difference."""

    allocated: int
    charged: int
    parts: tuple[Part, ...]

    @property
    def rest(self) -> int:
        """Bytes no part explains. Anything but 0 is a bug in this package."""
        return self.allocated - self.charged - sum(part.nbytes for part in self.parts)


def attribution(rank: Rank, sizes: PoolSizes) -> Attribution:
    """The difference between `tensor_specs` and `charges`, part by part; parts of 0 bytes are left out.

    Each part is worked out from its own cause and the ledgers' prices, so that `rest` can be wrong.
    """
    specs = tensor_specs(rank, sizes)
    named = {spec.name: spec.nbytes for spec in specs if spec.place == "device" and not spec.charged}
    priced = costs(rank)
    of = rank, sizes, priced
    parts = (*_uncharged(named), *_token_parts(*of), *_slot_parts(*of), *_snapshot_parts(*of))
    charged = charges(priced, sizes).total
    return Attribution(device_bytes(specs), charged, tuple(part for part in parts if part.nbytes))


_WHOLE = (
    ("request table", ("req_to_token",), "one row of token positions a request is never charged"),
    (
        "request maps",
        ("req_index_to_mamba_index_mapping", "req_index_to_mamba_ping_pong_track_buffer_mapping"),
        "request to state slot, and its tracking slots",
    ),
    ("compress tails", ("compress_tail_k", "compress_tail_score"), "unpooled keys and scores of a request"),
    (
        "draft compress tails",
        ("draft.compress_tail_k", "draft.compress_tail_score"),
        "the same for the draft layer",
    ),
    (
        "replay windows",
        ("intermediate_conv_window",),
        "replay keeps the convolution windows of each draft token, the budget drops them with the states",
    ),
    ("free lists", ("mamba_allocator.free_slots", "token_allocator.free_pages"), "the allocators' own lists"),
    ("pointer tables", ("data_ptrs", "draft.data_ptrs"), "one address a layer"),
)


def _uncharged(named: dict[str, int]) -> Iterator[Part]:
    for name, tensors, reason in _WHOLE:
        yield Part(name, sum(named.get(tensor, 0) for tensor in tensors), reason)


def _token_parts(rank: Rank, sizes: PoolSizes, priced: Costs) -> Iterator[Part]:
    geometry, deployment, profile, stage = rank
    page, tokens = deployment.page_size, sizes.tokens
    row = latent_kv.row_bytes(geometry, deployment.kv_layout, profile)
    index = indexer.reserved_bytes(geometry, profile)
    full, indexed = geometry.full_attention_in(stage), geometry.index_in(stage)
    draft = counts.draft_layers(rank)
    pages = (tokens + page + 1) // page
    rounding = pages * indexer.page_bytes(geometry, profile, page) - (tokens + page) * index
    yield Part("padding page", page * (full * row + indexed * index), "writes of padded tokens land in page 0")
    yield Part("draft padding page", page * draft * (row + index), "the draft's pool has one too")
    yield Part("index rounding", (indexed + draft) * rounding, "whole index pages, a rounded price a token")
    yield Part(
        "draft cache elsewhere",
        tokens * (draft * (row + index) - priced.draft_bytes),
        "every stage with full-attention layers pays for the draft's cache, the last one holds it",
    )


def _slot_parts(rank: Rank, sizes: PoolSizes, priced: Costs) -> Iterator[Part]:
    geometry, deployment, _, stage = rank
    layer = _state_layer(rank)
    if counts.replay_ring(rank):
        layer += replay_ring.layer_bytes(geometry, deployment.mamba_conv_dtype, deployment.linear_attn_tp_size)
    charge = priced.slot_bytes + priced.ring_bytes
    layers = counts.state_layers(rank)
    linear = geometry.linear_attention_in(stage)
    slots = sizes.state_slots + 1
    raised = counts.effective_state_slots(deployment, sizes) - sizes.state_slots
    yield Part("draft layer states", (layers - linear) * slots * layer, "a slab for the draft layer, never used")
    yield Part("pipeline state share", (linear * layer - charge) * slots, "each stage pays for the largest one")
    yield Part("PD decode state slots", layers * raised * layer, "slots raised to what the requests can need")


def _snapshot_parts(rank: Rank, sizes: PoolSizes, priced: Costs) -> Iterator[Part]:
    geometry, deployment, _, stage = rank
    if counts.replay_ring(rank):
        return  # neither charged nor allocated; the windows that stay are a part of their own
    drafts, most = priced.snapshot_drafts, counts.draft_tokens(deployment)
    paid = charged_rows(priced, sizes)
    if not counts.snapshots_allocated(deployment):
        reason = "a prefill server pays for verify snapshots that it never allocates"
        yield Part("absent snapshots", -paid * drafts * priced.slot_bytes, reason)
        return
    layer = _state_layer(rank)
    layers = counts.state_layers(rank)
    linear = geometry.linear_attention_in(stage)
    rows = sizes.running_requests + 1
    yield Part("draft layer snapshots", (layers - linear) * rows * most * layer, "verify snapshots of the draft layer")
    yield Part(
        "adaptive draft extra",
        linear * rows * (most - drafts) * layer,
        "buffers fit the adaptive maximum, the charge is for the starting draft length",
    )
    yield Part(
        "PD decode snapshot rows",
        layers * counts.prealloc_requests(deployment) * most * layer,
        "requests whose cache is still arriving have rows too",
    )
    yield Part(
        "pipeline snapshot share",
        (linear * layer - priced.slot_bytes) * rows * drafts,
        "each stage pays for the largest one",
    )
    yield Part(
        "snapshot rows",
        (rows - paid) * drafts * priced.slot_bytes,
        "rows follow the running requests, the charge follows the state slots",
    )


def _state_layer(rank: Rank) -> int:
    deployment = rank.deployment
    return kda_state.layer_bytes(
        rank.geometry, deployment.mamba_conv_dtype, deployment.mamba_ssm_dtype, deployment.linear_attn_tp_size
    )
