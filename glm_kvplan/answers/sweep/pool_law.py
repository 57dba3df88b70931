"""Device bytes of a rank's pools as a law of their sizes, read off `tensor_specs`, which stays the one description.

For one deployment every tensor is linear in pages, state slots and request rows, and the request table in context
length times rows. Six lists of tensors therefore say what every other size costs, at a fortieth of the time.
"""

from typing import NamedTuple

from glm_kvplan.engines.sglang.components import pool_units, tensor_specs
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.deployment import Deployment
from glm_kvplan.engines.sglang.rank import Rank
from glm_kvplan.tensor import device_bytes

_CONTEXT = 1  # context length of the smallest list


class PoolLaw(NamedTuple):
    """Bytes of one rank; `slots` is what `base` holds already."""

    base: int
    slots: int
    page_bytes: int
    slot_bytes: int
    request_bytes: int  # at the smallest context
    column_bytes: int  # of the request table's rows without a running request
    cell_bytes: int  # of one position of one request

    def device_bytes(self, deployment: Deployment, sizes: PoolSizes) -> int:
        """Bytes of all device tensors with pools of `sizes`, whose tokens are whole pages."""
        return (
            self.base
            + self.page_bytes * (sizes.tokens // deployment.page_size)
            + self.slot_bytes * (pool_units.effective_state_slots(deployment, sizes) - self.slots)
            + self.of_request(deployment) * sizes.running_requests
            + self.column_bytes * (deployment.context_length - _CONTEXT)
        )

    def of_request(self, deployment: Deployment) -> int:
        """Bytes one more running request takes, its state slots and tokens aside."""
        return self.request_bytes + self.cell_bytes * (deployment.context_length - _CONTEXT)


def pool_law(rank: Rank) -> PoolLaw:
    """The law of a rank's pools; its context length and caps do not matter."""
    deployment = rank.deployment
    short, longer = (deployment.changed(context_length=_CONTEXT + more) for more in (0, 1))
    # PD decode raises the slots to its requests' need: from here on they count as they are
    slots = pool_units.effective_state_slots(deployment, PoolSizes(0, 0, 1))

    def measure(at: Deployment, pages: int, more_slots: int, requests: int) -> int:
        sizes = PoolSizes(pages * deployment.page_size, slots + more_slots, requests)
        return device_bytes(tensor_specs(rank._replace(deployment=at), sizes))

    base = measure(short, 0, 0, 0)
    request = measure(short, 0, 0, 1) - base
    column = measure(longer, 0, 0, 0) - base
    return PoolLaw(
        base,
        slots,
        measure(short, 1, 0, 0) - base,
        measure(short, 0, 1, 0) - base,
        request,
        column,
        measure(longer, 0, 0, 1) - base - request - column,
    )
