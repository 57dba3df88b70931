"""Latent rows: the compressed K and V of a token in every full-attention layer."""

from glm_kvplan.engines.ledger import Account, Ledger
from glm_kvplan.engines.vllm.rank import Rank


def page_bytes(rank: Rank) -> int:
    """Bytes of one layer's rows in a block."""
    return rank.deployment.block_size * rank.deployment.row_bytes


def ledger(rank: Rank, tokens: int) -> Ledger:
    """`tokens` in the checkpoint's own layers (the MTP layer's stand in `mtp_layer`)."""
    layers, row = len(rank.geometry.full_attention_layers), rank.deployment.row_bytes
    account = Account(
        "latent_rows", "latent rows", "token", "layers * row_bytes", rank.profile.source("latent_row"), True, False
    )
    return Ledger(account, layers * row, tokens, (("layers", layers), ("row_bytes", row)))
