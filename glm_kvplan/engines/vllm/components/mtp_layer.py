"""The MTP layer: one more layer of latent rows and index keys while it drafts, however many tokens it drafts."""

from glm_kvplan.engines.ledger import Account, Ledger
from glm_kvplan.engines.vllm.components import index_keys
from glm_kvplan.engines.vllm.rank import Rank


def ledger(rank: Rank, tokens: int) -> Ledger:
    """`tokens` in the draft's layer; nothing without one."""
    geometry, layers = rank.geometry, rank.deployment.draft_layers
    row, key = rank.deployment.row_bytes, index_keys.key_bytes(geometry)
    formula = "layers * (row_bytes + key_bytes // index_kpool)"
    account = Account("mtp_layer", "MTP layer", "token", formula, rank.profile.source("speculation"), True, False)
    terms = (("layers", layers), ("row_bytes", row), ("key_bytes", key), ("index_kpool", geometry.index_kpool))
    return Ledger(account, layers * (row + key // geometry.index_kpool), tokens, terms)
