"""What a PD decode server allocates beyond its memory budget, tensor by tensor."""

from typing import NamedTuple

from glm_kvplan.engines.sglang.components import pool_units, tensor_specs
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.rank import Rank


class DecodeOverrun(NamedTuple):
    """One rank of a decode server against the same sizes without the role's extra room.

    The budget pays for `budgeted_slots`; the pool holds `slots`, raised to what the running and the pre-allocated
    requests need at once, and has rows for both. Nothing of `parts` was charged.
    """

    running_requests: int
    prealloc_requests: int
    request_rows: int  # the padding row included
    budgeted_slots: int
    slots: int
    parts: tuple[tuple[str, int], ...]  # tensor name and bytes, largest first

    @property
    def nbytes(self) -> int:
        return sum(nbytes for _, nbytes in self.parts)

    @property
    def slot_factor(self) -> float:
        """State slots held over state slots paid for: 3 at the default extra slots with up to 32 requests a worker."""
        return self.slots / max(self.budgeted_slots, 1)


def decode_overrun(rank: Rank, sizes: PoolSizes) -> DecodeOverrun | None:
    """The overrun of one rank; None where the request pool is not PD decode's.

    Source: disaggregation/decode.py:275-359 at 0.5.23.
    """
    deployment = rank.deployment
    if not pool_units.decode_pool(deployment):
        return None
    bare = deployment.with_values(
        disaggregation_mode="null",
        disaggregation_decode_extra_slots=0,
        enable_pd_role_switch=False,
    )
    plain = {spec.name: spec.nbytes for spec in tensor_specs(rank._replace(deployment=bare), sizes)}
    parts = [
        (spec.name, spec.nbytes - plain.get(spec.name, 0))
        for spec in tensor_specs(rank, sizes)
        if spec.place == "device"
    ]
    return DecodeOverrun(
        running_requests=sizes.running_requests,
        prealloc_requests=pool_units.prealloc_requests(deployment),
        request_rows=pool_units.request_rows(deployment, sizes),
        budgeted_slots=sizes.state_slots,
        slots=pool_units.effective_state_slots(deployment, sizes),
        parts=tuple(sorted((part for part in parts if part[1]), key=lambda part: -part[1])),
    )
