"""The device pools of one rank, as HiCache reads them to size the host's."""

from typing import NamedTuple

from glm_kvplan.engines.sglang.components import pool_units as counts
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.components.tensors import tensor_specs
from glm_kvplan.engines.sglang.rank import Rank


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
    names = {"kv_buffer": 0, "index_k_buffer": 0, "draft.kv_buffer": 0, "draft.index_k_buffer": 0}
    state = conv = temporal = rings = 0
    for spec in tensor_specs(rank, sizes):
        if spec.name in names:
            names[spec.name] = spec.nbytes
        elif spec.pool == "state":
            state += spec.nbytes
            conv = spec.nbytes if spec.name == "conv_state" else conv
            temporal = spec.nbytes if spec.name == "temporal_state" else temporal
            rings += spec.nbytes if spec.name.startswith("replayssm_") else 0
    layers = counts.state_layers(rank)
    slots = counts.effective_state_slots(rank.deployment, sizes)
    drafts = counts.draft_layers(rank)
    return DevicePools(
        tokens=sizes.tokens,
        state_slots=slots,
        kv_layers=geometry.full_attention_in(stage) + drafts,
        index_layers=geometry.index_in(stage) + drafts,
        state_layers=layers,
        layer_state_bytes=(conv + temporal) // (layers * (slots + 1)) if layers else 0,
        kv_bytes=names["kv_buffer"] + names["index_k_buffer"],
        state_bytes=state,
        draft_bytes=names["draft.kv_buffer"] + names["draft.index_k_buffer"],
        ring_bytes=rings // (slots + 1),
    )
