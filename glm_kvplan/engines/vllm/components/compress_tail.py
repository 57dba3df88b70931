"""Compress tails: the raw keys and gates of a request's newest tokens, until a pool of them is complete."""

from glm_kvplan.engines.ledger import Account, Ledger
from glm_kvplan.engines.vllm.rank import Rank
from glm_kvplan.model.geometry import Geometry
from glm_kvplan.tensor import DTYPE_BYTES

HALVES = 2  # the key and its gate


def slot_bytes(geometry: Geometry) -> int:
    """Bytes of one raw key with its gate (512)."""
    return HALVES * geometry.index_head_dim * DTYPE_BYTES["bfloat16"]


def layer_bytes(rank: Rank) -> int:
    """Bytes of one request's tail in one layer, without padding."""
    return rank.deployment.tail_slots * slot_bytes(rank.geometry)


def ledger(rank: Rank, requests: int) -> Ledger:
    """The tails of `requests` over all token layers, without the rest of the block each lies in."""
    formula = "layers * slots * 2 * index_head_dim * 2"
    source = rank.profile.source("tail")
    account = Account("compress_tail", "compress tail", "request", formula, source, True, False)
    terms = (
        ("layers", rank.token_layers),
        ("slots", rank.deployment.tail_slots),
        ("index_head_dim", rank.geometry.index_head_dim),
    )
    return Ledger(account, rank.token_layers * layer_bytes(rank), requests, terms)
