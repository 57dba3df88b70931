"""A running server's /server_info, served over loopback."""

import json
from typing import Any

import pytest
from boots import SECRETS, SERVER_INFO, printed, serving

from glm_kvplan.engines.sglang.boot_log.boot import LogRank
from glm_kvplan.engines.sglang.boot_log.reconciliation import reconcile
from glm_kvplan.engines.sglang.boot_log.server_info import boot_of, read_server_info
from glm_kvplan.errors import InputError


def test_a_running_server_is_explained() -> None:
    with serving(json.dumps(SERVER_INFO).encode()) as url:
        boot = read_server_info(url, 5)
    answer = reconcile(boot)
    assert answer.explained, answer.first_unexplained
    assert answer.chosen == "the server says 0.5.21"
    rows = printed(answer)
    assert rows["max_mamba_cache_size"] == ("159", "159")
    assert rows["token pool size"] == ("24.587", "24.587")
    assert not any(secret in repr(boot) for secret in SECRETS)


def test_a_running_server_that_is_not_as_predicted() -> None:
    states = [{**SERVER_INFO["internal_states"][0], "max_mamba_cache_size": 200}] * 8  # type: ignore[index,dict-item]
    answer = reconcile(boot_of({**SERVER_INFO, "internal_states": states}, "test"))
    assert answer.first_unexplained is not None
    assert answer.first_unexplained.name == "max_total_num_tokens"


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (b"not json", 200, "is not JSON"),
        (b"[1, 2]", 200, "has no tp_size"),
        (b'{"tp_size": 4}', 200, "no internal_states"),
        (b'{"tp_size": 4, "internal_states": [{}, 3, null]}', 200, "no internal_states"),
        (b"no", 404, "answers 404; is this an SGLang server"),
        (b"no", 403, "answers 403; put its key into KVPLAN_API_KEY"),
        (b"[" * 200_000, 200, "is not JSON"),
        (b"[" * 200_000 + b"{" * 200_001, 200, "is larger than 16 MiB or 400,000 values"),
        (b'{"tp_size": 4, "a": [' + b"1," * 400_000 + b"1]}", 200, "or 400,000 values"),
        (b" " * (16 << 20) + b" ", 200, "is larger than 16 MiB"),
        (b"\xff", 200, "is not JSON"),
    ],
)
def test_other_servers(body: bytes, status: int, message: str) -> None:
    with serving(body, status) as url, pytest.raises(InputError, match=message) as error:
        read_server_info(url, 5)
    assert "\n" not in str(error.value)


def test_a_server_that_is_not_there() -> None:
    with serving(b"") as url:
        pass
    with pytest.raises(InputError, match=r"does not answer \(\[Errno \d+\] Connection refused\); is the server up"):
        read_server_info(url, 5)


def test_a_server_with_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    with serving(json.dumps(SERVER_INFO).encode(), key="sk-1") as url:
        with pytest.raises(InputError, match="answers 401; put its key into KVPLAN_API_KEY"):
            read_server_info(url, 5)
        monkeypatch.setenv("KVPLAN_API_KEY", "sk-1")
        assert read_server_info(url, 5).release == "0.5.21"
        monkeypatch.setenv("KVPLAN_API_KEY", "sk-1\n")
        with pytest.raises(InputError, match="KVPLAN_API_KEY: holds characters that no HTTP header takes"):
            read_server_info(url, 5)


WORKER: dict[str, Any] = SERVER_INFO["internal_states"][0]  # type: ignore[index]
USAGE = WORKER["memory_usage"]
READY = {"tokens": "2076032", "requests": "31", "available": "33.100"}


def readings(state: object, **document: object) -> dict[str, dict[str, str]]:
    boot = boot_of({**SERVER_INFO, **document, "internal_states": [None, state]}, "test")
    return {name: dict(found[0]) for name, found in boot.ranks[LogRank(dp=1)].items()}


def test_every_reading_of_a_worker() -> None:
    """managers/scheduler_components/internal_state.py:45-63 at 0.5.23: its fields as the log would print them."""
    whole = {
        "slots": {"slots": "159"},
        "weights": {"usage": "54.500"},
        "token_pool": {"tokens": "2076032", "gib": "24.587"},
        "ready": READY,
    }
    assert readings(WORKER) == whole
    batches = {"chunked_prefill_size": -1, "max_prefill_tokens": 16384}
    assert readings({**WORKER, **batches})["ready"] == {**READY, "chunk": "-1", "prefill": "16384"}
    older = {"token_pool": {"tokens": "7"}, "ready": {"tokens": "7"}}  # no memory_usage yet
    assert readings({"memory_usage": []}, max_total_num_tokens=7) == older
    for number in (True, -2, 1 << 48, "159", 159.0, None):
        assert "slots" not in readings({**WORKER, "max_mamba_cache_size": number})
    assert readings({**WORKER, "max_mamba_cache_size": (1 << 48) - 1})["slots"] == {"slots": str((1 << 48) - 1)}
    for size in (True, "24.6", float("nan"), float("inf"), None):
        usage = {**USAGE, "kvcache": size, "weight": size, "startup_available": size}
        found = readings({**WORKER, "memory_usage": usage})
        assert "weights" not in found and found["token_pool"] == {"tokens": "2076032"}
        assert found["ready"] == {"tokens": "2076032", "requests": "31"}


def test_no_redirection_is_followed() -> None:
    with serving(b"", 302) as url, pytest.raises(InputError, match="answers 302"):
        read_server_info(url, 5)


def test_a_server_that_does_not_answer() -> None:
    with serving(b"", answers=False) as url, pytest.raises(InputError, match="does not answer"):
        read_server_info(url, 0.2)
    with pytest.raises(InputError, match="does not answer"):
        read_server_info("http://127.0.0.1:9", 0.5)


@pytest.mark.parametrize("url", ["ftp://host", "http://", "http://host:port", "", "file:///etc/passwd", "http://[::1"])
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(InputError):
        read_server_info(url, 0.5)


def test_the_path_may_be_given_and_a_password_is_not_shown() -> None:
    with serving(json.dumps(SERVER_INFO).encode()) as url:
        assert read_server_info(url + "/server_info", 5).release == "0.5.21"
        assert read_server_info(url + "/", 5).release == "0.5.21"
        assert read_server_info(url.removeprefix("http://"), 5).origin == url
        with pytest.raises(InputError, match="does not answer"):  # asked, but over TLS
            read_server_info(url.replace("http", "https"), 5)
    with pytest.raises(InputError) as error:
        read_server_info("http://me:hunter2@127.0.0.1:9/", 0.5)
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize(
    ("version", "release", "why"),
    [
        ("0.5.21.post2", "0.5.21", "the server says 0.5.21.post2"),
        ("0.5.21+cu130", "0.5.21", "the server says 0.5.21+cu130"),
        ("0.9.0", "0.5.21", "the server says 0.9.0, which has no profile; fits best"),
        (None, "0.5.21", "fits best"),
    ],
)
def test_versions(version: str | None, release: str, why: str) -> None:
    answer = reconcile(boot_of({**SERVER_INFO, "version": version}, "test"))
    assert answer.engine == release
    assert answer.chosen.startswith(why)
    assert release not in answer.chosen.partition(";")[2]  # what fits as well is another
    assert answer.explained
