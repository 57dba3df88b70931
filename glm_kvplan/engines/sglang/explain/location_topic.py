"""The map: every kind of object, its HBM pool, what the radix tree points to, its copy in DRAM, its price."""

from typing import NamedTuple

from glm_kvplan.engines.sglang.components import locations
from glm_kvplan.engines.sglang.components.component import Location
from glm_kvplan.engines.sglang.explain.topic import Ground

_ADJECTIVES = " ("  # what follows a pool's name in Location.hbm_pool


class Place(NamedTuple):
    """One object of the map. `nbytes` is what its tensors take on the rank under the workload."""

    location: Location
    pool: str  # the HBM pool without remarks
    nbytes: int


def places(ground: Ground) -> tuple[Place, ...]:
    """The map of one rank of the fullest stage, by pool; every large tensor is in one place."""
    found = [_place(ground, location) for location in locations(ground.answer.largest.rank)]
    order = list(dict.fromkeys(place.pool for place in found))
    return tuple(sorted(found, key=lambda place: order.index(place.pool)))


def _place(ground: Ground, location: Location) -> Place:
    nbytes = sum(ground.tensors[name].nbytes for name in location.tensors if name in ground.tensors)
    pool = location.hbm_pool.partition(_ADJECTIVES)[0]
    return Place(location, pool, nbytes)
