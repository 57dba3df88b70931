"""Request table (req_to_token): for every request row, the token slot of each of its positions."""

from glm_kvplan.engines.component import Account, Ledger

ENTRY_BYTES = 4  # int32

_ACCOUNT = Account(
    "request_table",
    "Request table",
    "request row",
    "(context_length + extra_columns) * 4",
    "mem_cache/memory_pool.py:286-309, mem_cache/allocation_sizing.py:85-108 at 0.5.21",
    charged=False,
    backed_up=False,
)


def ledger(context_length: int, extra_columns: int, rows: int) -> Ledger:
    """The ledger of `rows` request rows, each as wide as the longest context the server accepts."""
    terms = (("context_length", context_length), ("extra_columns", extra_columns))
    return Ledger(_ACCOUNT, (context_length + extra_columns) * ENTRY_BYTES, rows, terms)
