"""Draft (MTP) pools: the draft worker's own latent row and index key, one more full-attention layer a token."""

from glm_kvplan.engines.component import Account, Ledger

_ACCOUNT = Account(
    "draft_kv",
    "Draft KV + index",
    "token",
    "draft_layers * (row_bytes + index_bytes)",
    "model_executor/pool_configurator.py:216-250 at 0.5.21",
    charged=True,
    backed_up=True,
)


def ledger(row_bytes: int, index_bytes: int, draft_layers: int, tokens: int) -> Ledger:
    """The ledger of `tokens` tokens; the draft keeps the target's row layout and as many tokens as the target."""
    terms = (("draft_layers", draft_layers), ("row_bytes", row_bytes), ("index_bytes", index_bytes))
    return Ledger(_ACCOUNT, draft_layers * (row_bytes + index_bytes), tokens, terms)
