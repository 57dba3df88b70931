"""Draft (MTP) pools: the draft worker's own latent row and index key, one more full-attention layer a token.

They are the checkpoint's own draft layer's, of the target's layout. A draft model with a config of its own allocates
other tensors.
"""

from collections.abc import Iterator

from glm_kvplan.engines.ledger import Ledger
from glm_kvplan.engines.sglang.components import index_keys, latent_kv
from glm_kvplan.engines.sglang.components.component import (
    DRAFT,
    DRAFT_POOL,
    PADDING,
    Component,
    Location,
    Part,
    Printed,
    SegmentKind,
    no_copy,
    tree_part,
)
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.components.pool_units import draft_layers
from glm_kvplan.engines.sglang.rank import Rank
from glm_kvplan.tensor import TensorSpec

_SOURCE = "model_executor/pool_configurator.py:250-306 at 0.5.23"
_COPY_SOURCE = "speculative/base_spec_worker.py:39-55, 269-331 at 0.5.23"


# -- price -------------------------------------------------------------------------------------------------------------


def _prices(rank: Rank) -> tuple[int, int]:
    """Bytes of a token in one draft layer: its latent row and its index key, as the target has them."""
    geometry, profile = rank.geometry, rank.profile
    row = latent_kv.row_bytes(geometry, rank.deployment.kv_layout, profile)
    return row, index_keys.reserved_bytes(geometry, profile)


def charge(rank: Rank) -> int:
    """Bytes the sizer charges for a token: a share of the stage's rows, rounded down, and whole index keys.

    Every stage with full-attention layers pays it, wherever the draft lies.
    """
    return layers_charge(rank, rank.geometry.num_nextn_predict_layers) if rank.deployment.eagle else 0


def layers_charge(rank: Rank, layers: int) -> int:
    """Bytes charged for a token of a draft of `layers` layers that the sizer takes to be like the target's.

    Source: model_executor/pool_configurator.py:297-332 at 0.5.23.
    """
    full = rank.full_layers
    if not (full and layers):
        return 0
    return int(latent_kv.charge(rank) * layers / full) + layers * index_keys.reserved_bytes(rank.geometry, rank.profile)


def ledger(rank: Rank, sizes: PoolSizes) -> Ledger | None:
    """The draft keeps the target's row layout and as many tokens as the target."""
    if not rank.deployment.eagle:
        return None
    layers, (row, key) = draft_layers(rank), _prices(rank)
    terms = (("draft_layers", layers), ("row_bytes", row), ("index_bytes", key))
    return Ledger(_ACCOUNT, layers * (row + key), sizes.tokens, terms)


def difference(rank: Rank, sizes: PoolSizes) -> Iterator[Part]:
    layers, token = draft_layers(rank), sum(_prices(rank))
    yield Part(
        "draft padding page",
        rank.deployment.page_size * layers * token,
        "the draft's pool has one too",
        PADDING,
    )
    yield Part("index rounding", layers * index_keys.rounding(rank, sizes), index_keys.ROUNDING_REASON)
    yield Part(
        "draft cache elsewhere",
        sizes.tokens * (layers * token - charge(rank)),
        "every stage with full-attention layers pays for the draft's cache, the last one holds it",
    )


# -- tensors -----------------------------------------------------------------------------------------------------------


def tensors(rank: Rank, sizes: PoolSizes) -> tuple[TensorSpec, ...]:
    layers = draft_layers(rank)
    if not layers:
        return ()
    dtype, rows = latent_kv.buffer_shape(rank, sizes)
    keys = index_keys.buffer_shape(rank, sizes)
    return (
        TensorSpec("draft.kv_buffer", DRAFT, layers, dtype, rows, "device", True, latent_kv.BUFFER_SOURCE, NAME),
        TensorSpec(
            "draft.index_k_buffer", DRAFT, layers, "uint8", keys, "device", True, index_keys.BUFFER_SOURCE, NAME
        ),
    )


# -- copies ------------------------------------------------------------------------------------------------------------


def locations(rank: Rank) -> Iterator[Location]:
    deployment = rank.deployment
    if not deployment.eagle:  # another draft's pools are its own model's
        return
    off, tree = no_copy(deployment), tree_part(deployment, "FULL")
    layers, (row, key) = draft_layers(rank), _prices(rank)
    yield Location(
        NAME,
        "Draft (MTP) latent KV",
        DRAFT_POOL,
        ("draft.kv_buffer",),
        tree,
        None if off else "KV",
        off or "packed as one more layer of the KV pool; it shares the target's token slots",
        _COPY_SOURCE,
        "token",
        layers * row,
        NAME,
    )
    host_pool, reason = index_keys.copy_of(rank)
    yield Location(
        "draft_indexer",
        "Draft (MTP) index keys",
        DRAFT_POOL + " (own buffer)",
        ("draft.index_k_buffer",),
        tree,
        host_pool,
        reason,
        _COPY_SOURCE,
        "token",
        layers * key,
        NAME,
    )


NAME = "draft_kv"

COMPONENT = Component(
    name=NAME,
    title="Draft KV + index",
    unit="token",
    segment=SegmentKind("draft KV", "the draft layer's own rows and index keys", "token", "latent"),
    charge=charge,
    tensors=tensors,
    ledger=ledger,
    difference=difference,
    locations=locations,
    printed=(Printed("token_pool", "gib", "draft.kv_buffer"), Printed("token_pool", "gib", "draft.index_k_buffer")),
    of_draft=True,
    host_share="draft",
)

_ACCOUNT = COMPONENT.account("draft_layers * (row_bytes + index_bytes)", _SOURCE, backed_up=True)
