"""The boots of tests/data/logs for the tests of the log reader and of `reconcile`."""

import os
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from unittest.mock import patch

from paths import DATA

from glm_kvplan.engines.boot_logs import BesideLog
from glm_kvplan.engines.log_stream import read_file
from glm_kvplan.engines.sglang.boot_log.boot import Boot
from glm_kvplan.engines.sglang.boot_log.lines import ANCHORS
from glm_kvplan.engines.sglang.boot_log.reader import LogReader
from glm_kvplan.engines.sglang.boot_log.reconciliation import Reconciliation, reconcile

LOGS = DATA / "logs"
BOOTS = DATA / "boots"  # flags not in the log
FRAC80 = LOGS / "b200x4-mtp6-frac80.log"
SECRETS = ("sk-live-0123456789abcdef", "adm-0123456789", "hunter2", "wm-secret-77")


def read_log(lines: Iterable[bytes | str]) -> list[Boot]:
    """The server starts in a log's lines, in order."""
    reader = LogReader()
    for number, line in enumerate(lines, 1):
        reader.read(number, line)
    return reader.boots


def boots_of(path: Path) -> list[Boot]:
    return read_log(read_file(str(path), ANCHORS))


def plain_lines(path: Path) -> list[str]:
    """The engine's own lines of the docker compose log."""
    return [line.partition("\x1b[0m")[2] for line in path.read_text(encoding="utf-8").splitlines()]


def facts(boot: Boot) -> tuple[object, ...]:
    return boot.arguments, boot.ranks


def held(name: str, given: BesideLog | None = None) -> Reconciliation:
    """A log of tests/data/logs against the plan."""
    return reconcile(boots_of(LOGS / f"{name}.log")[-1], given or BesideLog())


def edited(name: str, *edits: tuple[str, str]) -> Reconciliation:
    """The same with some of its text replaced."""
    text = (LOGS / f"{name}.log").read_text(encoding="utf-8")
    for old, new in edits:
        assert old in text
        text = text.replace(old, new)
    return reconcile(read_log(text.splitlines())[-1])


def printed(answer: Reconciliation) -> dict[str, tuple[str, str]]:
    return {row.name: (row.predicted, row.printed) for row in answer.rows}


# What was published, by row; every one of them must come out of the flags, the memory and the release.
PUBLISHED = {
    "b200x4-mtp6-frac80": {
        "state pool slots": "574",
        "state pool ssm": "19.65",
        "state pool conv": "0.69",
        "state pool snapshot_ssm": "19.89",
        "state pool snapshot_conv": "0.70",
        "token pool tokens": "7289664",
        "token pool size": "48.09",
        "draft token pool size": "4.37",
    },
    "b200x4-mtp4-slots700": {
        "state pool slots": "700",
        "state pool ssm": "23.96",
        "state pool conv": "0.84",
        "state pool snapshot_ssm": "13.26",
        "state pool snapshot_conv": "0.47",
        "token pool tokens": "6389760",
        "token pool size": "42.16",
        "draft token pool size": "3.83",
    },
    "b200x4-mtp6-conc128": {"max_running_requests": "122", "capped: max_running_requests": "122"},
    "mi355x-nospec": {
        "state pool slots": "2371",
        "state pool ssm": "78.76",
        "state pool conv": "2.77",
        "max_total_num_tokens": "7650496",
        "max_running_requests": "32",
    },
    "example-a-0.5.20": {"max_total_num_tokens": "2076032", "max_running_requests": "31", "token pool size": "24.59"},
    "example-a-0.5.21": {"max_mamba_cache_size": "159", "host KV tokens": "4152128", "host state size": "47.09"},
    "example-a-0.5.22": {"max_total_num_tokens": "2200320", "host KV size": "49.57", "host index size": "1.60"},
    "example-b-0.5.21": {"max_total_num_tokens": "8563520", "max_mamba_cache_size": "706", "token pool size": "56.50"},
    "example-b-0.5.22": {"max_total_num_tokens": "9932544", "max_mamba_cache_size": "695"},
    "example-b-0.5.23": {"max_total_num_tokens": "9932544", "state pool conv": "0.81"},
}


SERVER_INFO = {
    "model_path": "zai-org/GLM-5.3-Flash-FP8",
    "tp_size": 8,
    "dp_size": 8,
    "enable_dp_attention": True,
    "kv_cache_dtype": "bfloat16",
    "dsa_prefill_backend": "flashmla_sparse",
    "dsa_decode_backend": "fa3",
    "mem_fraction_static": 0.73055,
    "chunked_prefill_size": 1024,
    "max_running_requests": None,
    "max_mamba_cache_size": None,
    "api_key": SECRETS[0],
    "admin_api_key": SECRETS[1],
    "launch_command": f"sglang serve --api-key {SECRETS[0]}",
    "max_total_num_tokens": 2076032,
    "max_req_input_len": 1048570,
    "version": "0.5.21",
    "internal_states": [
        {
            "max_mamba_cache_size": 159,
            "effective_max_running_requests_per_dp": 31,
            "api_key": SECRETS[0],
            "memory_usage": {
                "weight": 54.5,
                "kvcache": 24.587,
                "startup_available": 33.1,
                "token_capacity": 2076032,
                "token_capacity_swa": None,
                "graph": {"decode": 1.2},
            },
        }
    ]
    * 8,
}


class Answer(BaseHTTPRequestHandler):
    """A server that answers as it is told."""

    status, body, wait = 200, b"{}", threading.Event()
    key: str | None = None

    def do_GET(self) -> None:
        self.wait.wait(5)
        if self.key is not None and self.headers.get("Authorization") != f"Bearer {self.key}":
            self.send_error(401)
            return
        self.send_response(self.status)
        if self.status in (301, 302):
            self.send_header("Location", "http://127.0.0.1:9/server_info")
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing on standard error."""


@contextmanager
def serving(body: bytes, status: int = 200, *, answers: bool = True, key: str | None = None) -> Iterator[str]:
    wait = threading.Event()
    if answers:
        wait.set()
    handler = type("Handler", (Answer,), {"body": body, "status": status, "wait": wait, "key": key})
    server = HTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        with patch.dict(os.environ, {"no_proxy": "127.0.0.1"}):
            yield f"http://127.0.0.1:{server.server_port}"
    finally:
        wait.set()
        server.shutdown()
        server.server_close()
        thread.join()
