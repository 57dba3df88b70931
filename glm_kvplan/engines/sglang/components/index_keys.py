"""DSA indexer: one key with its scales a token (or a pool of tokens) in every full-attention layer."""

from glm_kvplan.engines.component import Account, Ledger
from glm_kvplan.engines.sglang.components.latent_kv import SCALE_BYTES
from glm_kvplan.engines.sglang.profile import EngineProfile
from glm_kvplan.model.geometry import QUANT_BLOCK, Geometry

_PER_TOKEN = "index_layers * (index_head_dim + index_head_dim // 128 * 4)"
_POOLED = "index_layers * -(-(index_head_dim + index_head_dim // 128 * 4) // index_kpool)"
_SOURCES = {
    False: "model_executor/pool_configurator.py:474-548 at 0.5.21",
    True: "model_executor/pool_configurator.py:568 at 0.5.23",
}
_ACCOUNTS = {
    (pooled, backed_up): Account(
        "indexer",
        "DSA indexer",
        "token",
        _POOLED if pooled else _PER_TOKEN,
        _SOURCES[pooled],
        True,
        backed_up,
    )
    for pooled in (False, True)
    for backed_up in (False, True)
}


def key_bytes(geometry: Geometry) -> int:
    """Bytes of one index key: fp8 elements and one fp32 scale a block of 128 (132 as published)."""
    return geometry.index_head_dim + geometry.index_head_dim // QUANT_BLOCK * SCALE_BYTES


def reserved_bytes(geometry: Geometry, profile: EngineProfile) -> int:
    """Bytes the engine sets aside for one token in one layer: 132, or 33 where the release stores pooled keys."""
    key = key_bytes(geometry)
    return -(-key // geometry.index_kpool) if profile.index_rows_pooled else key


def written_bytes(geometry: Geometry) -> int:
    """Bytes of effective payload of one token in one layer: with compression one key serves `index_kpool` tokens.

    Source: layers/attention/dsa/kpool_fp8_index.py:392-404 at 0.5.21. 33 as published.
    """
    key = key_bytes(geometry)
    return -(-key // geometry.index_kpool) if geometry.index_kpool_compress else key


def page_bytes(geometry: Geometry, profile: EngineProfile, page_size: int) -> int:
    """Bytes of one physical page of one layer (8,448 as published). Source: mem_cache/index_key_cache.py:32-38."""
    keys = page_size // geometry.index_kpool if profile.index_rows_pooled else page_size
    return keys * key_bytes(geometry)


def ledger(geometry: Geometry, profile: EngineProfile, layers: int, tokens: int) -> Ledger:
    """The ledger of `tokens` tokens over the `layers` full-attention layers that own an index buffer."""
    terms = (
        ("index_layers", layers),
        ("index_head_dim", geometry.index_head_dim),
        ("index_kpool", geometry.index_kpool),
    )
    account = _ACCOUNTS[profile.index_rows_pooled, profile.host_index_pool]
    reserved = layers * reserved_bytes(geometry, profile)
    return Ledger(account, reserved, tokens, terms, layers * written_bytes(geometry))
