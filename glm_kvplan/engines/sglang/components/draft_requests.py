"""Draft request table: a DFLASH draft that looks back a window keeps a request table of its own."""

from collections.abc import Iterator

from glm_kvplan.engines.ledger import Ledger
from glm_kvplan.engines.sglang.components import pool_units, request_table
from glm_kvplan.engines.sglang.components.component import DRAFT, Component, Location, Part
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.rank import Rank
from glm_kvplan.tensor import TensorSpec

_SOURCE = "speculative/dflash_worker_v2.py:680 at 0.5.23"


def _exists(rank: Rank) -> bool:
    deployment = rank.deployment
    windowed = deployment.speculative_draft_window_size is not None
    return windowed and deployment.speculative_algorithm == "DFLASH" and pool_units.hosts_draft(rank)


def _row(rank: Rank) -> int:
    return request_table.row_bytes(rank) if _exists(rank) else 0


def ledger(rank: Rank, sizes: PoolSizes) -> Ledger | None:
    if not _exists(rank):
        return None
    deployment = rank.deployment
    terms = (("context_length", deployment.context_length), ("extra_columns", deployment.request_table_extra))
    return Ledger(_ACCOUNT, _row(rank), pool_units.request_rows(deployment, sizes), terms)


def difference(rank: Rank, sizes: PoolSizes) -> Iterator[Part]:
    if _exists(rank):
        rows = pool_units.request_rows(rank.deployment, sizes)
        reason = "a windowed draft has a table of its own, never charged either"
        yield Part("draft request table", rows * request_table.row_bytes(rank), reason)


def tensors(rank: Rank, sizes: PoolSizes) -> Iterator[TensorSpec]:
    if _exists(rank):
        deployment, rows = rank.deployment, pool_units.request_rows(rank.deployment, sizes)
        table = (rows, deployment.context_length + deployment.request_table_extra)
        yield TensorSpec("draft.req_to_token", DRAFT, 1, "int32", table, "device", False, _SOURCE, NAME)


def locations(rank: Rank) -> Iterator[Location]:
    if _exists(rank):
        yield Location(
            NAME,
            COMPONENT.title,
            "draft ReqToTokenPool",
            ("draft.req_to_token",),
            None,
            None,
            "maps a running request's positions to the draft's token slots; not on the tree",
            _SOURCE,
            "request row",
            request_table.row_bytes(rank),
            NAME,
        )


NAME = "draft_requests"

COMPONENT = Component(
    name=NAME,
    title="Draft request table",
    unit="request row",
    segment=request_table.REQUESTS,
    tensors=tensors,
    ledger=ledger,
    price=_row,
    difference=difference,
    locations=locations,
    of_draft=True,
)

_ACCOUNT = COMPONENT.account("(context_length + extra_columns) * 4", _SOURCE)
