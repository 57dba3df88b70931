"""What one request costs in blocks: those of its tokens, and those it holds before its first token."""

from typing import NamedTuple

from glm_kvplan.engines.vllm.blocks import Blocks
from glm_kvplan.engines.vllm.components import compress_tail, index_keys, kda_state, latent_rows


class RequestCost(NamedTuple):
    """One request on one GPU. `used_bytes` is what it writes; the rest of `nbytes` is padding and ends of blocks."""

    context: int
    token_blocks: int
    state_blocks: int
    tail_blocks: int
    nbytes: int
    used_bytes: int

    @property
    def blocks(self) -> int:
        return self.token_blocks + self.state_blocks + self.tail_blocks

    @property
    def unused_share(self) -> float:
        """Share of its blocks that it never writes."""
        return 1 - self.used_bytes / self.nbytes


class FixedCost(NamedTuple):
    """What a request holds before its first token. `tokens` is what the same blocks would hold of one."""

    blocks: int
    nbytes: int
    tokens: int


class BlockUse(NamedTuple):
    """One kind of block: what a group puts into it, and the share that nothing is put into."""

    holds: str  # "tokens", "states" or "tail"
    groups: int
    layers: int  # of the widest such group
    used_bytes: int  # without padding
    padding_bytes: int  # of the pages themselves
    rest_bytes: int  # of the block beyond them
    unused_share: float


def request_cost(blocks: Blocks, context: int) -> RequestCost:
    """One request of `context` tokens."""
    rank = blocks.rank
    deployment = rank.deployment
    tokens = blocks.token_blocks(context)
    states = blocks.state_groups * deployment.states_per_request
    shared = -(-context // deployment.decode_context_parallel_size)
    rows = shared * deployment.row_bytes * rank.token_layers
    keys = -(-shared // rank.geometry.index_kpool) * index_keys.key_bytes(rank.geometry) * rank.token_layers
    held = deployment.states_per_request * rank.state_layers * kda_state.layer_bytes(rank)
    tail = rank.token_layers * compress_tail.layer_bytes(rank)
    nbytes = (tokens + states + 1) * blocks.nbytes
    return RequestCost(context, tokens, states, 1, nbytes, rows + keys + held + tail)


def fixed_cost(blocks: Blocks) -> FixedCost:
    return FixedCost(blocks.fixed, blocks.fixed * blocks.nbytes, blocks.fixed * blocks.tokens_a_block)


def block_uses(blocks: Blocks) -> tuple[BlockUse, ...]:
    """Each kind of block; of the state groups the narrowest, which wastes most."""
    found = []
    for holds in ("tokens", "states", "tail"):
        groups = [group for group in blocks.groups if group.holds == holds]
        group = min(groups, key=lambda each: each.layers)
        found.append(
            BlockUse(
                holds,
                len(groups),
                max(each.layers for each in groups),
                group.used,
                group.nbytes - group.used,
                blocks.nbytes - group.nbytes,
                1 - group.used / blocks.nbytes,
            )
        )
    return tuple(found)


def token_bytes(blocks: Blocks) -> int:
    """Bytes of one token's rows and keys on one GPU, over all token layers."""
    rank = blocks.rank
    return (latent_rows.page_bytes(rank) + index_keys.page_bytes(rank)) * rank.token_layers // blocks.size
