"""A running server's /server_info as a boot: what it says of its sizes and memory."""

import math
import os
from collections.abc import Mapping
from http import HTTPStatus
from http.client import HTTPException
from typing import Any
from urllib.parse import SplitResult, urlsplit

from glm_kvplan.engines.sglang.boot_log import log_releases as releases
from glm_kvplan.engines.sglang.boot_log import server_args
from glm_kvplan.engines.sglang.boot_log.boot import Boot, LogRank
from glm_kvplan.errors import InputError
from glm_kvplan.reading.exchange import get
from glm_kvplan.reading.json_text import read_json
from glm_kvplan.reading.unreadable import UnreadableError

TIMEOUT_S = 10.0
LARGEST_ANSWER = 16 << 20
MOST_VALUES = 400_000  # a server of 64 workers answers some ten thousand; as Python keeps them, each takes its memory
API_KEY = "KVPLAN_API_KEY"  # environment variable with the server's API key: a command line is seen by everyone


def read_server_info(url: str, timeout_s: float = TIMEOUT_S) -> Boot:
    """Ask `url` (http://host:30000) for its /server_info. Raises InputError where it does not answer, or not so.

    Source of the fields: managers/scheduler_components/internal_state.py:45-63,
    entrypoints/http_server.py:863-892 at 0.5.23.
    """
    try:
        parts = urlsplit(url if "//" in url else f"http://{url}")
    except ValueError:
        raise InputError("--url: is not an address; write http://host:port") from None
    port = _port(parts)
    shown = f"{parts.scheme}://{parts.hostname or ''}" + (f":{port}" if port else "")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise InputError(f"--url {shown}: write http://host:port")
    base = parts.path.rstrip("/").removesuffix("/server_info")
    headers = {}
    key = os.environ.get(API_KEY)
    if key is not None:
        if not (key.isascii() and key.isprintable()):
            raise InputError(f"{API_KEY}: holds characters that no HTTP header takes (a line feed at its end?)")
        headers["Authorization"] = f"Bearer {key}"
    try:
        answer = get(f"{shown}{base}/server_info", headers, seconds=timeout_s, most=LARGEST_ANSWER)
    except (OSError, HTTPException, ValueError) as error:
        raise InputError(f"--url {shown}: does not answer ({_reason(error)}); is the server up?") from None
    if answer.status != HTTPStatus.OK:
        hint = f"put its key into {API_KEY}" if answer.status in (401, 403) else "is this an SGLang server?"
        raise InputError(f"--url {shown}: /server_info answers {answer.status}; {hint}")
    if len(answer.body) > LARGEST_ANSWER or sum(map(answer.body.count, b"{[,")) > MOST_VALUES:
        raise InputError(
            f"--url {shown}: the answer is larger than {LARGEST_ANSWER >> 20} MiB or "
            f"{MOST_VALUES:,} values; is this an SGLang server?"
        )
    try:
        document, _ = read_json(answer.body.decode())
    except (UnicodeDecodeError, UnreadableError):
        raise InputError(f"--url {shown}: /server_info is not JSON; is this an SGLang server?") from None
    return boot_of(document, shown)


def _reason(error: Exception) -> str:
    """Why there is no answer, without anything that the server said."""
    reason = getattr(error, "reason", None) or error
    if isinstance(reason, HTTPException | ValueError):  # they quote what the server sent
        return "its answer is no HTTP" if isinstance(reason, HTTPException) else "the address is not read"
    return " ".join(str(reason).split())[:120] or type(reason).__name__


def _port(parts: SplitResult) -> int | None:
    try:
        return parts.port
    except ValueError:
        raise InputError("--url: the port is not a number; write http://host:port") from None


def boot_of(document: object, origin: str) -> Boot:
    """The boot that a /server_info document tells of. Raises InputError for another kind of document."""
    if not isinstance(document, dict) or "tp_size" not in document:
        raise InputError(f"{origin}: the document has no tp_size; it is not the /server_info of an SGLang server")
    parsed = server_args.from_mapping(document)
    version = document.get("version")
    boot = Boot(origin, release=version if isinstance(version, str) else None, arguments=parsed.values)
    boot.argument_names = set(parsed.names & releases.telling_names())
    states = document.get("internal_states")
    for number, state in enumerate(states if isinstance(states, list) else ()):
        if isinstance(state, Mapping):
            _worker(boot, LogRank(dp=number), state, document)
    if boot.empty:
        raise InputError(f"{origin}: /server_info has no internal_states; the server is still starting, or too old")
    return boot


def _worker(boot: Boot, rank: LogRank, state: Mapping[str, Any], document: Mapping[str, Any]) -> None:
    """One DP worker. Field names are those of the log's messages, so that the same rows come of both."""
    usage = state.get("memory_usage")
    usage = usage if isinstance(usage, Mapping) else {}
    tokens = _whole(usage.get("token_capacity")) or _whole(document.get("max_total_num_tokens"))
    slots = _whole(state.get("max_mamba_cache_size"))
    requests = _whole(state.get("effective_max_running_requests_per_dp"))
    if tokens is None:
        return
    if slots is not None:
        boot.add(rank, "slots", {"slots": slots})
    weights, size = _gib(usage.get("weight")), _gib(usage.get("kvcache"))
    if weights is not None:
        boot.add(rank, "weights", {"usage": weights})
    boot.add(rank, "token_pool", {"tokens": tokens} if size is None else {"tokens": tokens, "gib": size})
    running = {"tokens": tokens}
    if requests is not None:
        running["requests"] = requests
    for field, name in (("chunk", "chunked_prefill_size"), ("prefill", "max_prefill_tokens")):
        value = _whole(state.get(name))
        if value is not None:
            running[field] = value
    available = _gib(usage.get("startup_available"))
    if available is not None:
        running["available"] = available
    boot.add(rank, "ready", running)


def _whole(value: object) -> str | None:
    return str(value) if isinstance(value, int) and not isinstance(value, bool) and -1 <= value < 1 << 48 else None


def _gib(value: object) -> str | None:
    """Printed with up to three decimals; JSON drops trailing zeros."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return f"{value:.3f}"
