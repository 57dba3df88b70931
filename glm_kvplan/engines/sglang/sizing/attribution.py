"""Allocated bytes against charged bytes: every byte of the difference has a name, and the rest is zero."""

from collections.abc import Iterable
from typing import NamedTuple

from glm_kvplan.engines.sglang import components
from glm_kvplan.engines.sglang.components.component import Part
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.rank import Rank
from glm_kvplan.engines.sglang.sizing.rank_costs import check
from glm_kvplan.tensor import device_bytes


class Difference(NamedTuple):
    """One component's device bytes on one rank: allocated, charged, and the parts that explain the difference."""

    component: str
    allocated: int
    charged: int
    parts: tuple[Part, ...]

    @property
    def rest(self) -> int:
        """Bytes no part explains. Anything but 0 is a bug in this package."""
        return self.allocated - self.charged - sum(part.nbytes for part in self.parts)


class Attribution(NamedTuple):
    """Device bytes of one rank: what is allocated, what the budget was charged, and what explains the difference.

    Parts of one name are one part here, whichever components have them; `components` tells them apart.
    """

    allocated: int
    charged: int
    parts: tuple[Part, ...]
    components: tuple[Difference, ...]

    @property
    def rest(self) -> int:
        """Bytes no part explains. Anything but 0 is a bug in this package."""
        return self.allocated - self.charged - sum(part.nbytes for part in self.parts)


def attribution(rank: Rank, sizes: PoolSizes) -> Attribution:
    """The difference between the tensors and the charges of pools of `sizes`, part by part.

    Each part is worked out from its own cause and the ledgers' prices, so that `rest` can be wrong. Parts of 0 bytes
    are left out. Raises as `rank_costs.costs`.
    """
    check(rank.deployment)
    found = component_differences(rank, sizes)
    return Attribution(
        sum(each.allocated for each in found),
        sum(each.charged for each in found),
        _by_name(part for each in found for part in each.parts),
        found,
    )


def component_differences(rank: Rank, sizes: PoolSizes) -> tuple[Difference, ...]:
    """The difference of every component, in the order of the list."""
    return tuple(
        Difference(
            component.name,
            device_bytes(component.tensors(rank, sizes)),
            component.charged_bytes(rank, sizes),
            tuple(part for part in component.difference(rank, sizes) if part.nbytes),
        )
        for component in components.COMPONENTS
    )


def _by_name(parts: Iterable[Part]) -> tuple[Part, ...]:
    found: dict[str, Part] = {}
    for part in parts:
        before = found.get(part.name)
        found[part.name] = part if before is None else before._replace(nbytes=before.nbytes + part.nbytes)
    return tuple(part for part in found.values() if part.nbytes)
