"""The map: every kind of object, its HBM pool, what the radix tree points to, its copy in DRAM, its price."""

from typing import NamedTuple

from glm_kvplan.answers.explain.topic import Ground
from glm_kvplan.engines.sglang.components.locations import Location, locations

_ROW = "request row"
_ADJECTIVES = " ("  # what follows a pool's name in Location.hbm_pool


class Place(NamedTuple):
    """One object of the map. `nbytes` is what its tensors take on the rank under the workload."""

    location: Location
    pool: str  # the HBM pool without remarks
    unit: str  # token, state slot or request row
    unit_bytes: int
    nbytes: int


def places(ground: Ground) -> tuple[Place, ...]:
    """The map of one rank of the fullest stage, by pool; every large tensor is in one place."""
    found = [_place(ground, location) for location in locations(ground.plan.deployment, ground.plan.profile)]
    order = list(dict.fromkeys(place.pool for place in found))
    return tuple(sorted(found, key=lambda place: order.index(place.pool)))


def _place(ground: Ground, location: Location) -> Place:
    ledgers, tensors = ground.ledgers, ground.tensors
    nbytes = sum(tensors[name].nbytes for name in location.tensors if name in tensors)
    pool = location.hbm_pool.partition(_ADJECTIVES)[0]
    if location.name == "compress_tail":  # the draft's tails too
        return Place(location, pool, _ROW, nbytes // ledgers["compress_tail"].units, nbytes)
    if location.name in ("draft_kv", "draft_indexer") and "draft_kv" in ledgers:  # one ledger, two buffers
        terms = dict(ledgers["draft_kv"].terms)
        price = terms["row_bytes" if location.name == "draft_kv" else "index_bytes"]
        return Place(location, pool, "token", terms["draft_layers"] * price, nbytes)
    if location.name in ledgers:
        ledger = ledgers[location.name]
        return Place(location, pool, ledger.account.unit, ledger.bytes_per_unit, nbytes)
    rows = tensors["req_to_token"].shape[0]
    return Place(location, pool, _ROW, nbytes // rows, nbytes)
