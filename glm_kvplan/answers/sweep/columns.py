"""What a sweep says of a point, beside the point's own place on the axes."""

from typing import NamedTuple


class Column(NamedTuple):
    """`kind` is int, float, text or flag (on or off); a value may always be missing (None)."""

    name: str
    kind: str
    help: str


STATUS, REASON = "status", "reason"
RESULTS = (
    Column(STATUS, "text", "ok or refused"),
    Column("max_total_num_tokens", "int", "tokens of a DP worker"),
    Column("max_mamba_cache_size", "int", "state slots of a DP worker"),
    Column("max_running_requests", "int", "running requests of a DP worker"),
    Column("total_requests", "int", "running requests over all DP workers and replicas"),
    Column("tokens_bound_by", "text", "what limits the tokens"),
    Column("requests_bound_by", "text", "what limits the running requests"),
    Column("token_bytes", "int", "charged for one token on a rank"),
    Column("slot_bytes", "int", "charged for one state slot on a rank"),
    Column("request_bytes", "int", "allocated for one running request beside its slots and tokens"),
    Column("free_bytes", "int", "what serving can take once the pools exist"),
    Column("needed_bytes", "int", "what serving needs of it (estimated)"),
    Column("free_gib", "float", "free_bytes in GiB"),
    Column("headroom", "text", "fits, tight or short"),
    Column(
        "certainty", "text", "derived (both memory readings given), estimated, or upper bound (an unknown draft model)"
    ),
    Column("gpus", "int", "GPUs of the deployment"),
    Column("served", "int", "requests of the workload that fit at once"),
    Column("served_bound_by", "text", "what stops one more"),
    Column(REASON, "text", "why the point is refused"),
)
AT = {column.name: place for place, column in enumerate(RESULTS)}  # from the first result on
