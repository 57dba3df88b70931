"""The one tensor that a vLLM worker allocates, and where each layer's cache lies in it as a view."""

from math import gcd, prod
from typing import NamedTuple

from glm_kvplan.engines.vllm.blocks import INDEX_STRIDE_TOKENS, Blocks
from glm_kvplan.engines.vllm.components import compress_tail, index_keys, kda_state, latent_rows
from glm_kvplan.engines.vllm.rank import Rank
from glm_kvplan.tensor import DTYPE_BYTES, TensorSpec

BACKING = "kv_cache"


class LayerViews(NamedTuple):
    """Equal views of one kind of layer. Layer `l` of block `b` begins `offset + l * layer_stride + b * block_stride`
    bytes into the tensor. Views of several groups overlap: a block holds one group at a time.
    """

    name: str
    component: str
    layers: int
    blocks: int
    dtype: str
    shape: tuple[int, ...]  # of one layer: blocks (or the pieces a kernel reads them in), heads, states, contents
    offset: int
    layer_stride: int
    block_stride: int
    page_bytes: int  # that a layer takes of a block, padding included

    @property
    def used_bytes(self) -> int:
        """What one layer's view has elements for, in all blocks."""
        return prod(self.shape) * DTYPE_BYTES[self.dtype]

    @property
    def end(self) -> int:
        """The byte behind the last page."""
        last = (self.layers - 1) * self.layer_stride + (self.blocks - 1) * self.block_stride
        return self.offset + last + self.page_bytes

    @property
    def first_stride(self) -> int:
        """Bytes from one block, or one piece of it, to the next."""
        return self.block_stride * self.blocks // self.shape[0]


def backing(blocks: Blocks, count: int) -> TensorSpec:
    """The tensor that `count` blocks are. Source: allocate_kv_cache."""
    source = blocks.rank.profile.source("allocate")
    return TensorSpec(BACKING, "blocks", 1, "int8", (count * blocks.nbytes,), "device", True, source, "blocks")


def layer_views(blocks: Blocks, count: int) -> tuple[LayerViews, ...]:
    """The views of every layer: rows, keys, tails, and the states group by group."""
    rank = blocks.rank
    packed = rank.profile.blocks_packed
    layers, row_page, key_page = rank.token_layers, latent_rows.page_bytes(rank), index_keys.page_bytes(rank)
    stride = blocks.nbytes

    def place(page: int, before: int) -> tuple[int, int, int]:
        """(offset, layer stride, block stride) of pages behind `before` bytes of a block."""
        return (before, page, stride) if packed else (before * count, page * count, page)

    # the indexer's cache is made before the rows'; in 0.30 and 0.31 the rows' regions come first
    rows_before, keys_before = (layers * key_page, 0) if packed else (0, layers * row_page)
    tail = compress_tail.layer_bytes(rank)
    tail_page, tail_before = (tail, 0) if packed else (key_page, keys_before)
    kinds = (
        ("latent rows", "latent_rows", _row(rank, count), place(row_page, rows_before), row_page),
        ("index keys", "index_keys", _key(rank, count), place(key_page, keys_before), key_page),
        ("tails", "compress_tail", _tail(rank, count), place(tail_page, tail_before), tail_page),
    )
    found = [
        LayerViews(name, component, layers, count, *seen, *lies, page) for name, component, seen, lies, page in kinds
    ]
    state, page = kda_state.layer_bytes(rank), kda_state.page_bytes(rank)
    number = 0
    for group in blocks.groups:
        if group.holds == "states":
            number += 1
            shape = (count, 1, 1, state)
            name = f"KDA states, group {number}"
            found.append(LayerViews(name, "kda_state", group.layers, count, "int8", shape, *place(page, 0), page))
    return tuple(found)


def _row(rank: Rank, count: int) -> tuple[str, tuple[int, ...]]:
    deployment = rank.deployment
    whole = deployment.cache_dtype in ("auto", "bfloat16")
    dtype = "bfloat16" if whole else "float16" if deployment.cache_dtype == "float16" else "uint8"
    return dtype, (count, 1, deployment.block_size, deployment.row_bytes // DTYPE_BYTES[dtype])


def _key(rank: Rank, count: int) -> tuple[str, tuple[int, ...]]:
    """0.30 and 0.31 view a block as the pages that the indexer's kernels read."""
    pool, size = rank.geometry.index_kpool, rank.deployment.block_size
    page = size if rank.profile.blocks_packed else key_page_tokens(rank)
    return "uint8", (count * (size // page), 1, page // pool, index_keys.key_bytes(rank.geometry))


def key_page_tokens(rank: Rank) -> int:
    """Tokens of the largest page of index keys that divides a block."""
    return gcd(INDEX_STRIDE_TOKENS, rank.deployment.block_size)


def _tail(rank: Rank, count: int) -> tuple[str, tuple[int, ...]]:
    return "bfloat16", (count, compress_tail.HALVES, rank.deployment.tail_slots, rank.geometry.index_head_dim)
