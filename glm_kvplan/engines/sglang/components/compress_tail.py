"""Compress tail: a request's tokens that do not yet fill an index pool, kept raw in every layer with index keys."""

from glm_kvplan.engines.component import Account, Ledger
from glm_kvplan.model.geometry import Geometry

TAIL_BUFFERS = 2  # keys and scores
TAIL_BYTES = 2  # bf16
SPARE_ROWS = 2  # the request table's own row 0, and one more than the table

_ACCOUNT = Account(
    "compress_tail",
    "Compress tail",
    "request row",
    "index_layers * 2 * (index_kpool + draft_tokens) * index_head_dim * 2",
    "mem_cache/memory_pool.py:4972-5048 at 0.5.21",
    charged=False,
    backed_up=False,
)


def rows(requests: int) -> int:
    """Rows the buffers hold for `requests` running requests of one worker."""
    return requests + SPARE_ROWS


def row_bytes(geometry: Geometry, draft_tokens: int, layers: int) -> int:
    """Bytes of one request row over `layers` layers that own an index buffer, both buffers of the tail."""
    width = geometry.index_kpool + draft_tokens
    return _layers(geometry, layers) * TAIL_BUFFERS * width * geometry.index_head_dim * TAIL_BYTES


def ledger(geometry: Geometry, draft_tokens: int, layers: int, requests: int) -> Ledger:
    """The ledger of one worker with at most `requests` running requests."""
    terms = (
        ("index_layers", _layers(geometry, layers)),
        ("index_kpool", geometry.index_kpool),
        ("draft_tokens", draft_tokens),
        ("index_head_dim", geometry.index_head_dim),
    )
    return Ledger(_ACCOUNT, row_bytes(geometry, draft_tokens, layers), rows(requests), terms)


def _layers(geometry: Geometry, layers: int) -> int:
    """None of the layers has a tail where keys are not pooled: a pool of one token is always full."""
    return layers if geometry.index_kpool > 1 and geometry.index_kpool_compress else 0
