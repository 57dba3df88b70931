"""A running server's /server_info as a boot: what it says of its sizes and memory."""

import json
import math
import os
import urllib.error
import urllib.request
from collections.abc import Mapping
from http.client import HTTPException
from time import monotonic
from typing import Any
from urllib.parse import SplitResult, urlsplit

from glm_kvplan.engines.sglang.boot_log import log_releases as releases
from glm_kvplan.engines.sglang.boot_log import server_args
from glm_kvplan.engines.sglang.boot_log.boot import Boot, LogRank
from glm_kvplan.errors import InputError

TIMEOUT_S = 10.0
LARGEST_ANSWER = 16 << 20
API_KEY = "KVPLAN_API_KEY"  # environment variable with the server's API key: a command line is seen by everyone


def read_server_info(url: str, timeout_s: float = TIMEOUT_S) -> Boot:
    """Ask `url` (http://host:30000) for its /server_info. Raises InputError where it does not answer, or not so.

    Source of the fields: managers/scheduler.py:5218-5246, entrypoints/http_server.py:841-874 at 0.5.21.
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
    headers = {"Accept": "application/json"}
    key = os.environ.get(API_KEY)
    if key is not None:
        if not (key.isascii() and key.isprintable()):
            raise InputError(f"{API_KEY}: holds characters that no HTTP header takes (a line feed at its end?)")
        headers["Authorization"] = f"Bearer {key}"
    request = urllib.request.Request(f"{shown}{base}/server_info", headers=headers)
    try:
        with urllib.request.build_opener(_Stay).open(request, timeout=timeout_s) as answer:
            body = _body(answer, timeout_s)
    except urllib.error.HTTPError as error:
        hint = f"put its key into {API_KEY}" if error.code in (401, 403) else "is this an SGLang server?"
        raise InputError(f"--url {shown}: /server_info answers {error.code}; {hint}") from None
    except (urllib.error.URLError, TimeoutError, HTTPException, OSError, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        text = " ".join(str(reason).split()) or type(error).__name__
        raise InputError(f"--url {shown}: does not answer ({text[:120]}); is the server up?") from None
    if len(body) > LARGEST_ANSWER:
        raise InputError(
            f"--url {shown}: the answer is larger than {LARGEST_ANSWER >> 20} MiB; is this an SGLang server?"
        )
    try:
        document = json.loads(body)
    except (ValueError, RecursionError):
        raise InputError(f"--url {shown}: /server_info is not JSON; is this an SGLang server?") from None
    return boot_of(document, shown)


class _Stay(urllib.request.HTTPRedirectHandler):
    """Follows no redirection: the key is for this server alone."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


def _body(answer: Any, timeout_s: float) -> bytes:
    """The answer, within the time for all of it, not for each piece."""
    end = monotonic() + timeout_s
    body = b""
    while len(body) <= LARGEST_ANSWER:
        piece = answer.read1(1 << 16)
        if not piece:
            break
        body += piece
        if monotonic() > end:
            raise TimeoutError("timed out")
    return body


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
