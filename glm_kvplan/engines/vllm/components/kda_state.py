"""KDA states: a convolution window and a recurrent state in every linear layer, each padded to a page of the block."""

from glm_kvplan.engines.ledger import Account, Ledger
from glm_kvplan.engines.vllm.rank import Rank
from glm_kvplan.model.geometry import Geometry
from glm_kvplan.tensor import DTYPE_BYTES


def conv_bytes(geometry: Geometry, dtype: str, tensor: int, draft_tokens: int) -> int:
    """Bytes of one layer's window on one GPU; drafts lengthen it by a row each."""
    taps, channels = geometry.conv_state_shape
    return (taps + draft_tokens) * (channels // tensor) * DTYPE_BYTES[dtype]


def recurrent_bytes(geometry: Geometry, dtype: str, tensor: int) -> int:
    """Bytes of one layer's recurrent state on one GPU (4,194,304 on one in float32)."""
    heads, rows, columns = geometry.temporal_state_shape
    return heads // tensor * rows * columns * DTYPE_BYTES[dtype]


def layer_bytes(rank: Rank) -> int:
    """Bytes of one state in one layer, without padding."""
    deployment = rank.deployment
    tensor = deployment.tensor_parallel_size
    window = conv_bytes(rank.geometry, deployment.conv_dtype, tensor, deployment.num_speculative_tokens)
    return window + recurrent_bytes(rank.geometry, deployment.state_dtype, tensor)


def page_bytes(rank: Rank) -> int:
    """Bytes a state takes in one layer: padded to what a block's rows are sized with, or to the rows themselves."""
    deployment = rank.deployment
    return deployment.block_size * (deployment.sized_row_bytes if rank.profile.blocks_packed else deployment.row_bytes)


def ledger(rank: Rank, states: int) -> Ledger:
    """`states` over all layers, without padding."""
    geometry, deployment = rank.geometry, rank.deployment
    taps, channels = geometry.conv_state_shape
    heads, head_dim, _ = geometry.temporal_state_shape
    account = Account(
        "kda_state",
        "KDA state",
        "state",
        "layers * ((taps + draft_tokens) * channels * conv_bytes + heads * head_dim * head_dim * state_bytes)",
        rank.profile.source("state_shape"),
        True,
        False,
    )
    terms = (
        ("layers", rank.state_layers),
        ("taps", taps),
        ("draft_tokens", deployment.num_speculative_tokens),
        ("channels", channels // deployment.tensor_parallel_size),
        ("conv_bytes", DTYPE_BYTES[deployment.conv_dtype]),
        ("heads", heads // deployment.tensor_parallel_size),
        ("head_dim", head_dim),
        ("state_bytes", DTYPE_BYTES[deployment.state_dtype]),
    )
    return Ledger(account, rank.state_layers * layer_bytes(rank), states, terms)


def padding(rank: Rank, states: int) -> Ledger:
    """What `states` are padded by over all layers, to the page that a block's rows set."""
    page, state = page_bytes(rank), layer_bytes(rank)
    source = rank.profile.source("padding")
    account = Account("state_padding", "padding of a state", "state", "layers * (page - state)", source, True, False)
    terms = (("layers", rank.state_layers), ("page", page), ("state", state))
    return Ledger(account, rank.state_layers * (page - state), states, terms)
