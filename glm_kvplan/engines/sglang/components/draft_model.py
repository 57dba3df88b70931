"""Draft model KV: the K and V rows of a draft model of its own (DFLASH, DSPARK, EAGLE3 or STANDALONE with a path).

As many tokens as the target, whatever the draft's window. A block draft is priced by its own heads; the engine takes
any other for layers like the target's, and allocates what the draft really needs.
"""

from collections.abc import Iterator

from glm_kvplan.engines.ledger import Ledger
from glm_kvplan.engines.sglang.components import draft_kv, pool_units
from glm_kvplan.engines.sglang.components.component import (
    DRAFT,
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
from glm_kvplan.engines.sglang.rank import Rank
from glm_kvplan.tensor import DTYPE_BYTES, TensorSpec

_CHARGE_SOURCE = "speculative/dflash_utils.py:137 at 0.5.23 (scale_kv_cell_size_per_token_for_dflash)"
_SOURCE = "mem_cache/memory_pool.py:2094-2203 at 0.5.23 (MHATokenToKVPool)"
POINTERS = 6  # of a layer: of K, of V, of both once more, and their strides


# -- price -------------------------------------------------------------------------------------------------------------


def _row(rank: Rank, heads: int, layers: int) -> int:
    """Bytes of a token in `layers` layers of `heads` KV heads."""
    draft, dtype = rank.deployment.draft_model, rank.deployment.draft_kv_dtype
    if draft is None or dtype is None:
        return 0
    return heads * (draft.head_dim + draft.v_head_dim) * layers * DTYPE_BYTES[dtype]


def charge(rank: Rank) -> int:
    """Bytes the sizer charges for a token, on every stage, wherever the draft lies.

    Source: model_executor/model_runner_components/spec_aux_hidden_state.py:246 at 0.5.21 (all ranks' heads),
    mem_cache/draft_kv_budget.py:14-48 at 0.5.23 (an attention group's).
    """
    deployment, draft = rank.deployment, rank.deployment.draft_model
    if draft is None:  # unknown: a block draft costs something, another one a layer of the target at the least
        unknown = deployment.unknown_draft and not deployment.block_draft
        return draft_kv.layers_charge(rank, 1) if unknown else 0
    if not deployment.block_draft:
        return draft_kv.layers_charge(rank, draft.pool_layers)
    ranks = deployment.attn_tp_size if rank.profile.draft_heads_by_attention_tp else deployment.tp_size
    return _row(rank, draft.heads(ranks), draft.layers)


def row(rank: Rank) -> int:
    """Bytes of a token where the draft lies; 0 for one that is not known."""
    draft = rank.deployment.draft_model
    return 0 if draft is None else _row(rank, draft.heads(rank.deployment.attn_tp_size), draft.pool_layers)


def held(rank: Rank) -> int:
    """Bytes a token really takes on this rank."""
    return row(rank) if pool_units.hosts_draft(rank) else 0


def ledger(rank: Rank, sizes: PoolSizes) -> Ledger | None:
    draft, price = rank.deployment.draft_model, held(rank)
    if draft is None or not price:
        return None
    terms = (
        ("layers", draft.pool_layers),
        ("kv_heads", draft.heads(rank.deployment.attn_tp_size)),
        ("head_dim", draft.head_dim),
        ("v_head_dim", draft.v_head_dim),
        ("element_bytes", DTYPE_BYTES[rank.deployment.draft_kv_dtype or "bfloat16"]),
    )
    return Ledger(_ACCOUNT, price, sizes.tokens, terms)


def difference(rank: Rank, sizes: PoolSizes) -> Iterator[Part]:
    price, paid = held(rank), charge(rank)
    yield Part("draft padding page", rank.deployment.page_size * price, "the draft's pool has one too", PADDING)
    if not pool_units.hosts_draft(rank):
        reason = "every stage pays for the draft's cache, the last one holds it"
        if rank.deployment.unknown_draft:
            reason = "charged for a draft model that nothing is known of"
        yield Part("draft cache elsewhere", -sizes.tokens * paid, reason)
        return
    reason = "the budget takes the draft's layers for the target's"
    if rank.deployment.block_draft:
        reason = "the budget divides the draft's heads by other ranks, or counts other layers, than its pool"
    yield Part("draft rows charged otherwise", sizes.tokens * (price - paid), reason)


# -- tensors -----------------------------------------------------------------------------------------------------------


def tensors(rank: Rank, sizes: PoolSizes) -> Iterator[TensorSpec]:
    deployment = rank.deployment
    draft, dtype = deployment.draft_model, deployment.draft_kv_dtype
    if draft is None or dtype is None or not pool_units.hosts_draft(rank):
        return
    rows, heads = sizes.tokens + deployment.page_size, draft.heads(deployment.attn_tp_size)
    for name, width in (("draft.k_buffer", draft.head_dim), ("draft.v_buffer", draft.v_head_dim)):
        shape = (rows, heads, width)
        yield TensorSpec(name, DRAFT, draft.pool_layers, dtype, shape, "device", True, _SOURCE, NAME)


def locations(rank: Rank) -> Iterator[Location]:
    if not pool_units.hosts_draft(rank):
        return
    off = no_copy(rank.deployment)
    yield Location(
        NAME,
        COMPONENT.title,
        "draft MHATokenToKVPool",
        ("draft.k_buffer", "draft.v_buffer"),
        tree_part(rank.deployment, "FULL"),
        None if off else "DRAFT",
        off or "whole rows, at the indices of KV",
        _SOURCE,
        "token",
        held(rank),
        NAME,
    )


NAME = "draft_model"

COMPONENT = Component(
    name=NAME,
    title="Draft model KV",
    unit="token",
    segment=SegmentKind("draft model KV", "K and V rows of a draft model of its own", "token", "latent"),
    charge=charge,
    tensors=tensors,
    ledger=ledger,
    difference=difference,
    locations=locations,
    printed=(
        Printed("token_pool", "k_gib", "draft.k_buffer"),
        Printed("token_pool", "v_gib", "draft.v_buffer"),
    ),
    of_draft=True,
    host_share="draft",
)

_ACCOUNT = COMPONENT.account(
    "layers * kv_heads * (head_dim + v_head_dim) * element_bytes", _CHARGE_SOURCE, backed_up=True
)
