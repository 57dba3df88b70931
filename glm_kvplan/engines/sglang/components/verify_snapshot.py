"""Verify snapshots: the KDA state after each draft token of a request, until the accepted one is known.

Where verification replays recorded inputs instead, the convolution windows alone are kept, and nobody pays for them.
"""

from collections.abc import Iterator

from glm_kvplan.engines.ledger import Ledger
from glm_kvplan.engines.sglang.components import kda_state, pool_units
from glm_kvplan.engines.sglang.components.component import (
    SLAB,
    STATE_POOL,
    Component,
    Location,
    Part,
    Printed,
    SegmentKind,
)
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.rank import Rank
from glm_kvplan.tensor import TensorSpec

_BUFFER_SOURCE = "mem_cache/memory_pool.py:883-964 at 0.5.23"
_SLAB_REASON = "verify snapshots of the draft layer"


# -- price -------------------------------------------------------------------------------------------------------------


def charged_drafts(rank: Rank) -> int:
    """Snapshots the budget reserves for one request: the configured draft tokens, not the adaptive maximum."""
    deployment = rank.deployment
    if not deployment.speculative or pool_units.replay_ring(rank):
        return 0
    prefill_only = deployment.disaggregation_mode == "prefill" and not deployment.enable_pd_role_switch
    if prefill_only and not rank.profile.prefill_snapshots_charged:
        return 0
    return deployment.speculative_num_draft_tokens or 0


def charge(rank: Rank) -> int:
    """Bytes the sizer charges for a request: a whole slot for every draft token."""
    drafts = charged_drafts(rank)
    return kda_state.charge(rank) * drafts if drafts else 0


def _keeps_states(rank: Rank) -> bool:
    return pool_units.snapshots_allocated(rank.deployment) and not pool_units.replay_ring(rank)


def _row(rank: Rank) -> int:
    return pool_units.draft_tokens(rank.deployment) * _slot_bytes(rank) if _keeps_states(rank) else 0


def ledger(rank: Rank, sizes: PoolSizes) -> Ledger | None:
    deployment = rank.deployment
    if not _keeps_states(rank):
        return None
    terms = (("draft_tokens", pool_units.draft_tokens(deployment)), ("slot_bytes", _slot_bytes(rank)))
    return Ledger(_ACCOUNT, _row(rank), pool_units.request_rows(deployment, sizes), terms)


def _slot_bytes(rank: Rank) -> int:
    return rank.linear_layers * kda_state.layer_bytes(rank)


def _window_bytes(rank: Rank) -> int:
    """Bytes of one convolution window in one layer."""
    deployment = rank.deployment
    return kda_state.conv_bytes(rank.geometry, deployment.mamba_conv_dtype, deployment.linear_attn_tp_size)


def difference(rank: Rank, sizes: PoolSizes) -> Iterator[Part]:
    deployment = rank.deployment
    drafts, most = charged_drafts(rank), pool_units.draft_tokens(deployment)
    slot, paid = kda_state.charge(rank), pool_units.charged_units("request row", rank, sizes)
    layers, linear = pool_units.state_layers(rank), rank.linear_layers
    if not pool_units.snapshots_allocated(deployment):
        reason = "a prefill server pays for verify snapshots that it never allocates"
        yield Part("absent snapshots", -paid * drafts * slot, reason)
        return
    if pool_units.replay_ring(rank):
        window = pool_units.request_rows(deployment, sizes) * most * _window_bytes(rank)
        reason = "replay keeps the convolution windows of each draft token, the budget drops them with the states"
        yield Part("draft layer snapshots", (layers - linear) * window, _SLAB_REASON, SLAB)
        yield Part("replay windows", linear * window, reason)
        return
    layer, rows = kda_state.layer_bytes(rank), sizes.running_requests + 1
    yield Part("draft layer snapshots", (layers - linear) * rows * most * layer, _SLAB_REASON, SLAB)
    extra = linear * rows * (most - drafts) * layer
    if deployment.speculative:
        reason = "buffers fit the adaptive maximum, the charge is for the starting draft length"
        yield Part("adaptive draft extra", extra, reason)
    else:
        reason = "draft tokens without an algorithm: allocated, neither used nor charged"
        yield Part("stray draft snapshots", extra, reason)
    yield Part(
        "PD decode snapshot rows",
        layers * pool_units.prealloc_requests(deployment) * most * layer,
        "requests whose cache is still arriving have rows too",
    )
    yield Part(
        "pipeline snapshot share",
        (linear * layer - slot) * rows * drafts,
        "each stage pays for the largest one",
    )
    yield Part(
        "snapshot rows",
        (rows - paid) * drafts * slot,
        "rows follow the running requests, the charge follows the state slots",
    )


# -- tensors -----------------------------------------------------------------------------------------------------------


def tensors(rank: Rank, sizes: PoolSizes) -> tuple[TensorSpec, ...]:
    deployment = rank.deployment
    if not pool_units.snapshots_allocated(deployment):
        return ()
    conv, temporal = kda_state.state_shapes(rank)
    lead = (
        pool_units.state_layers(rank),
        pool_units.request_rows(deployment, sizes),
        pool_units.draft_tokens(deployment),
    )
    replay = pool_units.replay_ring(rank)
    windows = TensorSpec(
        "intermediate_conv_window", "state", 1, deployment.mamba_conv_dtype, (*lead, *conv), "device", not replay,
        _BUFFER_SOURCE, NAME,
    )  # fmt: skip
    if replay:
        return (windows,)
    states = TensorSpec(
        "intermediate_ssm", "state", 1, deployment.mamba_ssm_dtype, (*lead, *temporal), "device", True,
        _BUFFER_SOURCE, NAME,
    )  # fmt: skip
    return states, windows


def locations(rank: Rank) -> Iterator[Location]:
    deployment = rank.deployment
    if not pool_units.snapshots_allocated(deployment):
        return
    each, names = _slot_bytes(rank), ["intermediate_ssm", "intermediate_conv_window"]
    if pool_units.replay_ring(rank):
        each, names = pool_units.state_layers(rank) * _window_bytes(rank), names[1:]
    yield Location(
        NAME,
        COMPONENT.title,
        STATE_POOL,
        tuple(names),
        None,
        None,
        "live for one verify step of a running request; the tree never points at them",
        _BUFFER_SOURCE,
        "request row",
        pool_units.draft_tokens(deployment) * each,
        NAME,
    )


NAME = "verify_snapshot"

COMPONENT = Component(
    name=NAME,
    title="Verify snapshots",
    unit="request row",
    segment=SegmentKind(
        "verify snapshots", "the states after every draft token of every request", "request row", "states"
    ),
    charge=charge,
    tensors=tensors,
    ledger=ledger,
    price=_row,
    difference=difference,
    locations=locations,
    printed=(
        Printed("state_pool", "snapshot_ssm", "intermediate_ssm"),
        Printed("state_pool", "snapshot_conv", "intermediate_conv_window"),
    ),
    host_share="state",
)

_ACCOUNT = COMPONENT.account("draft_tokens * slot_bytes", "mem_cache/kv_cache_configurator.py:3229-3409 at 0.5.23")
