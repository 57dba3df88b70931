"""Request maps: from a request row to its state slot and to its tracking slots."""

from collections.abc import Iterator

from glm_kvplan.engines.sglang.components import pool_units
from glm_kvplan.engines.sglang.components.component import Component, Part
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.components.request_table import REQUESTS
from glm_kvplan.engines.sglang.rank import Rank
from glm_kvplan.tensor import TensorSpec

SLOT_BYTES, TRACKED_BYTES = 4, 8  # int32, int64

_SOURCE = "mem_cache/memory_pool.py:1518-1530 at 0.5.23"


def difference(rank: Rank, sizes: PoolSizes) -> Iterator[Part]:
    deployment = rank.deployment
    row = SLOT_BYTES + TRACKED_BYTES * pool_units.ping_pong_slots(deployment)
    rows = pool_units.request_rows(deployment, sizes)
    yield Part("request maps", rows * row, "request to state slot, and its tracking slots")


def tensors(rank: Rank, sizes: PoolSizes) -> tuple[TensorSpec, ...]:
    rows, tracking = pool_units.request_rows(rank.deployment, sizes), pool_units.ping_pong_slots(rank.deployment)
    slots = TensorSpec(
        "req_index_to_mamba_index_mapping", "requests", 1, "int32", (rows,), "device", False, _SOURCE, NAME
    )
    if not tracking:
        return (slots,)
    tracked = "req_index_to_mamba_ping_pong_track_buffer_mapping"
    return slots, TensorSpec(tracked, "requests", 1, "int64", (rows, tracking), "device", False, _SOURCE, NAME)


NAME = "request_maps"

COMPONENT = Component(
    name=NAME,
    title="Request maps",
    unit="request row",
    segment=REQUESTS,
    tensors=tensors,
    difference=difference,
)
