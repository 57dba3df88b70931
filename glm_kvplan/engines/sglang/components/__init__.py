"""The kinds of memory of one rank, one file each, and what is read off their list: tensors, ledgers, locations."""

from glm_kvplan.engines.ledger import Ledger
from glm_kvplan.engines.sglang.components import (
    compress_tail,
    decode_ring,
    draft_kv,
    draft_model,
    draft_requests,
    free_lists,
    hicache_staging,
    index_keys,
    kda_state,
    latent_kv,
    pointer_tables,
    replay_ring,
    request_maps,
    request_table,
    verify_snapshot,
)
from glm_kvplan.engines.sglang.components.component import Component, Location
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.rank import Rank
from glm_kvplan.tensor import TensorSpec, device_bytes

# What grows with tokens, with state slots, with requests, and the rest: the order of every table and map.
COMPONENTS: tuple[Component, ...] = (
    latent_kv.COMPONENT,
    index_keys.COMPONENT,
    draft_kv.COMPONENT,
    draft_model.COMPONENT,
    kda_state.COMPONENT,
    replay_ring.COMPONENT,
    decode_ring.COMPONENT,
    verify_snapshot.COMPONENT,
    compress_tail.COMPONENT,
    request_table.COMPONENT,
    draft_requests.COMPONENT,
    request_maps.COMPONENT,
    free_lists.COMPONENT,
    pointer_tables.COMPONENT,
    hicache_staging.COMPONENT,
)


_PRICES = {
    unit: tuple(component.price for component in COMPONENTS if component.unit == unit and component.price is not None)
    for unit in ("state slot", "request row")
}


def allocated_bytes(rank: Rank, sizes: PoolSizes) -> int:
    """Bytes of the `tensor_specs` that lie on the device."""
    return device_bytes([spec for component in COMPONENTS for spec in component.tensors(rank, sizes)])


def tensor_specs(rank: Rank, sizes: PoolSizes) -> tuple[TensorSpec, ...]:
    """Every tensor one rank allocates with pools of `sizes`: the only description of an allocation in this package.

    Shapes come from the geometry and the sizes, never from a ledger's bytes: that the two agree is a finding.
    """
    return tuple(
        spec for component in COMPONENTS for spec in component.tensors(rank, sizes) if spec.count and spec.shape[0]
    )


def row_bytes(rank: Rank) -> int:
    """The whole price of one running request beside its state slots and tokens: over all ledgers paid by the row."""
    return sum([price(rank) for price in _PRICES["request row"]])


def slot_bytes(rank: Rank) -> int:
    """The whole price of one state slot, charged or not: over all ledgers paid by the slot."""
    return sum([price(rank) for price in _PRICES["state slot"]])


def rank_ledgers(rank: Rank, sizes: PoolSizes) -> tuple[Ledger, ...]:
    """The ledgers of one rank: those that grow with tokens, then with state slots, then with requests."""
    found = (component.ledger(rank, sizes) for component in COMPONENTS)
    return tuple(ledger for ledger in found if ledger is not None)


def locations(rank: Rank) -> tuple[Location, ...]:
    """Where every kind of object lies that a deployment allocates, in the order of the components."""
    return tuple(location for component in COMPONENTS for location in component.locations(rank))
