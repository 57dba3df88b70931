"""Verify snapshots: the KDA state after each draft token of a request, until the accepted one is known."""

from glm_kvplan.engines.component import Account, Ledger

_ACCOUNT = Account(
    "verify_snapshot",
    "Verify snapshots",
    "request row",
    "draft_tokens * slot_bytes",
    "mem_cache/kv_cache_configurator.py:2402-2569 at 0.5.21",
    charged=True,
    backed_up=False,
)


def ledger(slot_bytes: int, draft_tokens: int, rows: int) -> Ledger:
    """The ledger of `rows` request rows: one whole KDA state (`slot_bytes`) for every draft token of each."""
    terms = (("draft_tokens", draft_tokens), ("slot_bytes", slot_bytes))
    return Ledger(_ACCOUNT, draft_tokens * slot_bytes, rows, terms)
