"""Request table (req_to_token): for every request row, the token slot of each of its positions."""

from collections.abc import Iterator

from glm_kvplan.engines.ledger import Ledger
from glm_kvplan.engines.sglang.components import pool_units
from glm_kvplan.engines.sglang.components.component import Component, Location, Part, SegmentKind
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.rank import Rank
from glm_kvplan.tensor import TensorSpec

ENTRY_BYTES = 4  # int32
REQUESTS = SegmentKind("request table", "four bytes a token of context for every request", "request row")

_SOURCE = "mem_cache/memory_pool.py:388-411 at 0.5.23"


def row_bytes(rank: Rank) -> int:
    """Bytes of one request row, as wide as the longest context the server accepts."""
    return (rank.deployment.context_length + rank.deployment.request_table_extra) * ENTRY_BYTES


def ledger(rank: Rank, sizes: PoolSizes) -> Ledger:
    deployment = rank.deployment
    terms = (("context_length", deployment.context_length), ("extra_columns", deployment.request_table_extra))
    return Ledger(_ACCOUNT, row_bytes(rank), pool_units.request_rows(deployment, sizes), terms)


def difference(rank: Rank, sizes: PoolSizes) -> Iterator[Part]:
    rows = pool_units.request_rows(rank.deployment, sizes)
    yield Part("request table", rows * row_bytes(rank), "one row of token positions a request is never charged")


def tensors(rank: Rank, sizes: PoolSizes) -> tuple[TensorSpec, ...]:
    deployment, rows = rank.deployment, pool_units.request_rows(rank.deployment, sizes)
    table = (rows, deployment.context_length + deployment.request_table_extra)
    return (
        TensorSpec("req_to_token", "requests", 1, "int32", table, "device", False, _SOURCE, NAME),
        TensorSpec("req_generation", "requests", 1, "int64", (rows,), "host", False, _SOURCE, NAME),
    )


def locations(rank: Rank) -> Iterator[Location]:
    yield Location(
        NAME,
        COMPONENT.title,
        "ReqToTokenPool",
        ("req_to_token",),
        None,
        None,
        "maps a running request's positions to token slots; not on the tree",
        _SOURCE,
        "request row",
        row_bytes(rank),
        NAME,
    )


NAME = "request_table"

COMPONENT = Component(
    name=NAME,
    title="Request table",
    unit="request row",
    segment=REQUESTS,
    tensors=tensors,
    ledger=ledger,
    price=row_bytes,
    difference=difference,
    locations=locations,
)

_ACCOUNT = COMPONENT.account(
    "(context_length + extra_columns) * 4",
    "mem_cache/memory_pool.py:388-411, mem_cache/allocation_sizing.py:96-117 at 0.5.23",
)
