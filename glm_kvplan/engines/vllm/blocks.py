"""vLLM's blocks: what one holds, how many bytes it takes, how many a request needs and how many there are."""

from dataclasses import dataclass
from math import gcd, lcm
from typing import NamedTuple

from glm_kvplan.engines.vllm.backends import find_backend
from glm_kvplan.engines.vllm.components import compress_tail, index_keys, kda_state, latent_rows
from glm_kvplan.engines.vllm.rank import Rank

INDEX_STRIDE_TOKENS = 256  # the indexer's largest page: a packed block is a multiple of its keys
ROW_PAGE = 64  # rows in a page of the kernels that read scaled rows


class Group(NamedTuple):
    """Layers that take one block id together. `nbytes` is what they fill of a block, padding of states included."""

    holds: str  # "tokens", "states" or "tail"
    layers: int  # cache layers: a full-attention layer has two, its rows and its index keys
    nbytes: int
    used: int  # without the padding


@dataclass(frozen=True, slots=True)
class Blocks:
    """The blocks of one GPU. A block id is one stretch of memory that holds one group's pages."""

    rank: Rank
    nbytes: int  # of one block
    groups: tuple[Group, ...]  # in vLLM's order

    @property
    def size(self) -> int:
        """Tokens of a block."""
        return self.rank.deployment.block_size

    @property
    def tokens_a_block(self) -> int:
        """Tokens of a request one block id covers: more than a block's where GPUs share a request's tokens."""
        return self.size * self.rank.deployment.decode_context_parallel_size

    @property
    def state_groups(self) -> int:
        return sum(group.holds == "states" for group in self.groups)

    @property
    def fixed(self) -> int:
        """Blocks a request holds before its first token: its tail's, and its states' in every state group."""
        return 1 + self.state_groups * self.rank.deployment.states_per_request

    @property
    def state_blocks(self) -> int:
        """Blocks of one whole state: one a state group."""
        return self.state_groups

    def token_blocks(self, context: int) -> int:
        """Blocks of a request's tokens."""
        shared = -(-context // self.rank.deployment.decode_context_parallel_size)
        return -(-shared // self.size)

    def needed(self, context: int) -> int:
        """Blocks vLLM counts for a request of `context` tokens. Source: get_max_concurrency_for_kv_cache_config."""
        return self.token_blocks(context) + self.fixed

    def count(self, available: int) -> int:
        """Blocks that `available` bytes become, or as many as --num-gpu-blocks-override says."""
        override = self.rank.deployment.num_gpu_blocks_override
        return available // self.nbytes if override is None else override

    def longest_context(self, blocks: int) -> int:
        """Tokens one request can have in `blocks`, of which one is never given out; 0 where not even one fits."""
        spare = blocks - 1 - self.fixed
        return max(spare, 0) * self.tokens_a_block


def blocks_of(rank: Rank) -> Blocks:
    """The blocks of a GPU: the groups of its layers, and how wide a block has to be."""
    layers = rank.token_layers
    rows, keys = latent_rows.page_bytes(rank), index_keys.page_bytes(rank)
    content = layers * (rows + keys)
    tokens = Group("tokens", 2 * layers, content, content)
    if rank.profile.blocks_packed:
        stride = lcm(row_stride(rank), index_stride(rank))
        states = _state_groups(rank, -(-rank.state_layers // (content // kda_state.page_bytes(rank))))
        used = layers * compress_tail.layer_bytes(rank)
        return Blocks(rank, stride * -(-content // stride), (*states, tokens, Group("tail", layers, used, used)))
    states = _state_groups(rank, -(-rank.state_layers // layers))
    tail = Group("tail", layers, layers * keys, layers * compress_tail.layer_bytes(rank))
    return Blocks(rank, content, (tokens, tail, *states))


def _state_groups(rank: Rank, groups: int) -> tuple[Group, ...]:
    """The KDA layers dealt out over so many groups, in turn."""
    page, state = kda_state.page_bytes(rank), kda_state.layer_bytes(rank)
    layers = [len(range(number, rank.state_layers, groups)) for number in range(groups)]
    return tuple(Group("states", count, count * page, count * state) for count in layers)


def row_stride(rank: Rank) -> int:
    """Bytes that a packed block is a multiple of for its latent rows."""
    rows = find_backend(rank.deployment.mla_backend).stride_rows
    if rank.deployment.cache_dtype != "fp8_ds_mla":
        return rows * rank.deployment.row_bytes
    page = gcd(ROW_PAGE, rank.deployment.block_size)
    return 1 if page == rank.deployment.block_size else page * rank.deployment.row_bytes


def index_stride(rank: Rank) -> int:
    """Bytes that a packed block is a multiple of for its index keys."""
    tokens = gcd(INDEX_STRIDE_TOKENS, rank.deployment.block_size)
    if tokens == rank.deployment.block_size:
        return 1
    return tokens // rank.geometry.index_kpool * index_keys.key_bytes(rank.geometry)
