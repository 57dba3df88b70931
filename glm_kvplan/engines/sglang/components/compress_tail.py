"""Compress tail: a request's tokens that do not yet fill an index pool, kept raw in every layer with index keys."""

from collections.abc import Iterator

from glm_kvplan.engines.ledger import Ledger
from glm_kvplan.engines.sglang.components import pool_units
from glm_kvplan.engines.sglang.components.component import DRAFT, FULL_POOL, Component, Location, Part, SegmentKind
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.rank import Rank
from glm_kvplan.model.geometry import Geometry
from glm_kvplan.tensor import TensorSpec

TAIL_BUFFERS = 2  # keys and scores
TAIL_BYTES = 2  # bf16
SPARE_ROWS = 2  # the request table's own row 0, and one more than the table

_SOURCE = "mem_cache/memory_pool.py:5409-5485 at 0.5.23"
_BUFFERS = ("compress_tail_k", "compress_tail_score")


# -- price -------------------------------------------------------------------------------------------------------------


def rows(requests: int) -> int:
    """Rows the buffers hold for `requests` running requests of one worker."""
    return requests + SPARE_ROWS


def row_bytes(geometry: Geometry, draft_tokens: int, layers: int) -> int:
    """Bytes of one request row over `layers` layers that own an index buffer, both buffers of the tail."""
    width = geometry.index_kpool + draft_tokens
    return _layers(geometry, layers) * TAIL_BUFFERS * width * geometry.index_head_dim * TAIL_BYTES


def _layers(geometry: Geometry, layers: int) -> int:
    """None of the layers has a tail where keys are not pooled: a pool of one token is always full."""
    return layers if geometry.index_kpool > 1 and geometry.index_kpool_compress else 0


def _rows(rank: Rank, sizes: PoolSizes) -> int:
    return rows(sizes.running_requests + pool_units.prealloc_requests(rank.deployment))


def _row(rank: Rank) -> int:
    return row_bytes(rank.geometry, pool_units.draft_tokens(rank.deployment), rank.index_layers)


def ledger(rank: Rank, sizes: PoolSizes) -> Ledger:
    """The target's tails; the draft layer's own are a part of `difference`."""
    geometry, layers = rank.geometry, rank.index_layers
    drafts = pool_units.draft_tokens(rank.deployment)
    terms = (
        ("index_layers", _layers(geometry, layers)),
        ("index_kpool", geometry.index_kpool),
        ("draft_tokens", drafts),
        ("index_head_dim", geometry.index_head_dim),
    )
    return Ledger(_ACCOUNT, _row(rank), _rows(rank, sizes), terms)


def difference(rank: Rank, sizes: PoolSizes) -> Iterator[Part]:
    drafts = pool_units.draft_tokens(rank.deployment)
    yield Part("compress tails", ledger(rank, sizes).total, "unpooled keys and scores of a request")
    draft = row_bytes(rank.geometry, drafts, pool_units.draft_layers(rank))
    yield Part("draft compress tails", _rows(rank, sizes) * draft, "the same for the draft layer")


# -- tensors -----------------------------------------------------------------------------------------------------------


def tensors(rank: Rank, sizes: PoolSizes) -> list[TensorSpec]:
    geometry, deployment = rank.geometry, rank.deployment
    # One row more than the request table has: the indexer's sentinel for an invalid request.
    width = geometry.index_kpool + pool_units.draft_tokens(deployment)
    shape = (pool_units.request_rows(deployment, sizes) + 1, width, geometry.index_head_dim)
    owners = ((NAME, "", rank.index_layers), (DRAFT, "draft.", pool_units.draft_layers(rank)))
    return [
        TensorSpec(prefix + name, pool, count, "bfloat16", shape, "device", False, _SOURCE, NAME)
        for pool, prefix, layers in owners
        if (count := _layers(geometry, layers))
        for name in _BUFFERS
    ]


def locations(rank: Rank) -> Iterator[Location]:
    drafts = rank.deployment.eagle
    layers = rank.index_layers + pool_units.draft_layers(rank)
    yield Location(
        NAME,
        "Compress tails",
        FULL_POOL + " (per request)",
        _BUFFERS + tuple("draft." + name for name in _BUFFERS if drafts),
        None,
        None,
        "a running request's last tokens that fill no index pool yet"
        + (", the draft layer's own included" if drafts else "")
        + "; not on the tree",
        _SOURCE,
        "request row",
        row_bytes(rank.geometry, pool_units.draft_tokens(rank.deployment), layers),
        NAME,
    )


NAME = "compress_tail"

COMPONENT = Component(
    name=NAME,
    title="Compress tail",
    unit="request row",
    segment=SegmentKind("compress tails", "index keys not yet pooled, a row for every request", "request row", "index"),
    tensors=tensors,
    ledger=ledger,
    price=_row,
    difference=difference,
    locations=locations,
)

_ACCOUNT = COMPONENT.account("index_layers * 2 * (index_kpool + draft_tokens) * index_head_dim * 2", _SOURCE)
