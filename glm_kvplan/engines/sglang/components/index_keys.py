"""DSA indexer: one key with its scales a token (or a pool of tokens) in every layer that owns an index."""

from collections.abc import Iterator
from typing import Literal

from glm_kvplan.engines.ledger import Ledger
from glm_kvplan.engines.sglang.components.component import (
    FULL_POOL,
    KV_SPLIT,
    PADDING,
    Component,
    Location,
    Part,
    Printed,
    SegmentKind,
    no_copy,
    tree_part,
)
from glm_kvplan.engines.sglang.components.latent_kv import PADDING_REASON, SCALE_BYTES
from glm_kvplan.engines.sglang.components.pool_sizes import PoolSizes
from glm_kvplan.engines.sglang.profile import EngineProfile
from glm_kvplan.engines.sglang.rank import Rank
from glm_kvplan.model.geometry import QUANT_BLOCK, Geometry
from glm_kvplan.tensor import TensorSpec

BUFFER_SOURCE = "mem_cache/index_key_cache.py:21-46 at 0.5.23"


# -- price -------------------------------------------------------------------------------------------------------------


def key_bytes(geometry: Geometry) -> int:
    """Bytes of one index key: fp8 elements and one fp32 scale a block of 128 (132 as published)."""
    return geometry.index_head_dim + geometry.index_head_dim // QUANT_BLOCK * SCALE_BYTES


def reserved_bytes(geometry: Geometry, profile: EngineProfile) -> int:
    """Bytes the engine sets aside for one token in one layer: 132, or 33 where the release stores pooled keys."""
    key = key_bytes(geometry)
    return -(-key // geometry.index_kpool) if profile.index_rows_pooled else key


def written_bytes(geometry: Geometry) -> int:
    """Bytes of effective payload of one token in one layer: with compression one key serves `index_kpool` tokens.

    Source: layers/attention/dsa/kpool_fp8_index.py:399-411 at 0.5.23. 33 as published.
    """
    key = key_bytes(geometry)
    return -(-key // geometry.index_kpool) if geometry.index_kpool_compress else key


def page_bytes(geometry: Geometry, profile: EngineProfile, page_size: int) -> int:
    """Bytes of one physical page of one layer (8,448 as published).

    Source: mem_cache/index_key_cache.py:40-47 at 0.5.23.
    """
    keys = page_size // geometry.index_kpool if profile.index_rows_pooled else page_size
    return keys * key_bytes(geometry)


def charge(rank: Rank) -> int:
    """Bytes the sizer charges for a token: its share of a key in the rank's layers that own an index."""
    return rank.index_layers * reserved_bytes(rank.geometry, rank.profile)


def ledger(rank: Rank, sizes: PoolSizes) -> Ledger:
    geometry = rank.geometry
    layers = rank.index_layers
    terms = (
        ("index_layers", layers),
        ("index_head_dim", geometry.index_head_dim),
        ("index_kpool", geometry.index_kpool),
    )
    account = _ACCOUNTS[rank.profile.index_rows_pooled, rank.profile.host_index_pool]
    return Ledger(account, charge(rank), sizes.tokens, terms, layers * written_bytes(geometry))


def rounding(rank: Rank, sizes: PoolSizes) -> int:
    """Bytes of one layer's whole pages beyond the price of their tokens, the padding page's included."""
    page, tokens = rank.deployment.page_size, sizes.tokens
    pages = (tokens + page + 1) // page
    paid = (tokens + page) * reserved_bytes(rank.geometry, rank.profile)
    return pages * page_bytes(rank.geometry, rank.profile, page) - paid


def difference(rank: Rank, sizes: PoolSizes) -> Iterator[Part]:
    yield Part("padding page", rank.deployment.page_size * charge(rank), PADDING_REASON, PADDING)
    layers = rank.index_layers
    yield Part("index rounding", layers * rounding(rank, sizes), ROUNDING_REASON)


ROUNDING_REASON = "whole index pages, a rounded price a token"


# -- tensors -----------------------------------------------------------------------------------------------------------


def page_elements(rank: Rank) -> int:
    """Bytes of one physical page of index keys with their scales (8,448 as published, in every release)."""
    geometry, page = rank.geometry, rank.deployment.page_size
    keys = page // geometry.index_kpool if rank.profile.index_rows_pooled else page
    return keys * (geometry.index_head_dim + geometry.index_head_dim // QUANT_BLOCK * SCALE_BYTES)


def buffer_shape(rank: Rank, sizes: PoolSizes) -> tuple[int, ...]:
    """Shape of one layer's buffer, by pages: those of the tokens, the padding page, and what is left of one."""
    page = rank.deployment.page_size
    return (sizes.tokens + page + 1) // page, page_elements(rank)


def tensors(rank: Rank, sizes: PoolSizes) -> tuple[TensorSpec, ...]:
    layers, shape = rank.index_layers, buffer_shape(rank, sizes)
    return (TensorSpec("index_k_buffer", NAME, layers, "uint8", shape, "device", True, BUFFER_SOURCE, NAME),)


# -- copies ------------------------------------------------------------------------------------------------------------


def copy_of(rank: Rank) -> tuple[Literal["KV", "INDEXER"] | None, str]:
    """The host pool that holds the index keys where HiCache is on, and how, or why none does."""
    off = no_copy(rank.deployment)
    if off:
        return None, off
    if rank.profile.host_index_pool:
        return "INDEXER", "pages follow the KV pool's pages"
    if rank.deployment.hicache_mem_layout == KV_SPLIT:
        return "KV", "page_first_kv_split keeps index keys beside the latent rows"
    return None, "this release builds host pools for KV and state only; a page comes back without its index keys"


def locations(rank: Rank) -> Iterator[Location]:
    host_pool, reason = copy_of(rank)
    yield Location(
        NAME,
        "DSA index keys",
        FULL_POOL + " (own buffer)",
        ("index_k_buffer",),
        tree_part(rank.deployment, "FULL"),
        host_pool,
        reason,
        "mem_cache/hybrid_cache/hybrid_pool_assembler.py:2022-2097 at 0.5.23, mem_cache/pool_host/dsa.py at 0.5.23",
        "token",
        charge(rank),
        NAME,
    )


NAME = "indexer"

COMPONENT = Component(
    name=NAME,
    title="DSA indexer",
    unit="token",
    segment=SegmentKind("index K", "index keys with their scales, whole on every rank", "token", "index"),
    charge=charge,
    tensors=tensors,
    ledger=ledger,
    difference=difference,
    locations=locations,
    printed=(Printed("token_pool", "gib", "index_k_buffer"),),
    host_share="kv",
)

_KEY = "(index_head_dim + index_head_dim // 128 * 4)"
_WORDS = {
    False: (f"index_layers * {_KEY}", "model_executor/pool_configurator.py:562-633 at 0.5.23"),
    True: (f"index_layers * -(-{_KEY} // index_kpool)", "model_executor/pool_configurator.py:568 at 0.5.23"),
}
_ACCOUNTS = {
    (pooled, backed_up): COMPONENT.account(*_WORDS[pooled], backed_up=backed_up)
    for pooled in (False, True)
    for backed_up in (False, True)
}
