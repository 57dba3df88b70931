"""Index keys: one FP8 key with its scale for every pool of tokens, in every full-attention layer."""

from glm_kvplan.engines.ledger import Account, Ledger
from glm_kvplan.engines.vllm.rank import Rank
from glm_kvplan.model.geometry import QUANT_BLOCK, Geometry

SCALE_BYTES = 4


def key_bytes(geometry: Geometry) -> int:
    """Bytes of one pooled key with its scale (132)."""
    return geometry.index_head_dim + geometry.index_head_dim // QUANT_BLOCK * SCALE_BYTES


def page_bytes(rank: Rank) -> int:
    """Bytes of one layer's keys in a block."""
    return rank.deployment.block_size // rank.geometry.index_kpool * key_bytes(rank.geometry)


def ledger(rank: Rank, tokens: int) -> Ledger:
    """`tokens` in the checkpoint's own layers: a quarter of a key each."""
    geometry, layers = rank.geometry, len(rank.geometry.full_attention_layers)
    account = Account(
        "index_keys",
        "index keys",
        "token",
        "layers * (index_head_dim + scales * 4) // index_kpool",
        rank.profile.source("index_keys"),
        True,
        False,
    )
    terms = (
        ("layers", layers),
        ("index_head_dim", geometry.index_head_dim),
        ("scales", geometry.index_head_dim // QUANT_BLOCK),
        ("index_kpool", geometry.index_kpool),
    )
    return Ledger(account, layers * key_bytes(geometry) // geometry.index_kpool, tokens, terms)
