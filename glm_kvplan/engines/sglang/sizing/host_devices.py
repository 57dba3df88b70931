"""The device pools of one rank, as HiCache reads them to size the host's."""

from typing import NamedTuple

from glm_kvplan.engines.sglang import components
from glm_kvplan.engines.sglang.components import kda_state, pool_units
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.rank import Rank
from glm_kvplan.tensor import device_bytes


class DevicePools(NamedTuple):
    """What host sizing reads off one rank's device pools."""

    tokens: int
    state_slots: int  # PD decode's raised count where it applies
    kv_layers: int  # the draft's packed layers included
    index_layers: int  # likewise; fewer than kv_layers where layers share an indexer
    state_layers: int
    layer_state_bytes: int  # one slot in one layer
    kv_bytes: int  # latent rows and index keys of the target
    state_bytes: int  # states, verify snapshots and replay rings
    draft_bytes: int  # latent rows and index keys of the draft
    ring_bytes: int = 0  # one slot's replay rings, all layers; part of state_bytes


def device_pools(rank: Rank, sizes: PoolSizes) -> DevicePools:
    """The device pools of one rank as the host pools see them (tensor bytes, padding included)."""
    geometry, stage = rank.geometry, rank.stage
    held = {"kv": 0, "state": 0, "draft": 0}
    rings = 0
    for component in components.COMPONENTS:
        if component.host_share is None:
            continue
        nbytes = device_bytes(component.tensors(rank, sizes))
        held[component.host_share] += nbytes
        if component.host_share == "state" and component.unit == "state slot" and component.name != kda_state.NAME:
            rings += nbytes
    layers = pool_units.state_layers(rank)
    slots = pool_units.effective_state_slots(rank.deployment, sizes)
    drafts = pool_units.draft_layers(rank)
    return DevicePools(
        tokens=sizes.tokens,
        state_slots=slots,
        kv_layers=geometry.full_attention_in(stage) + drafts,
        index_layers=geometry.index_in(stage) + drafts,
        state_layers=layers,
        layer_state_bytes=kda_state.layer_bytes(rank) if layers else 0,
        kv_bytes=held["kv"],
        state_bytes=held["state"],
        draft_bytes=held["draft"],
        ring_bytes=rings // (slots + 1),
    )
