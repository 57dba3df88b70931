"""One deadline for a whole exchange, whatever a server sends (hostile/06): it drips, it never ends, it lies."""

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from glm_kvplan.engines.sglang.boot_log.server_info import read_server_info
from glm_kvplan.errors import InputError
from glm_kvplan.reading.exchange import get

LIMIT = 0.6  # seconds asked for
SLACK = 6.0  # of a busy machine


def _forever(piece: bytes, pause: float = 0.0, first: bytes = b"") -> Callable[[socket.socket], None]:
    def send(connection: socket.socket) -> None:
        connection.sendall(first)
        while True:
            connection.sendall(piece)
            time.sleep(pause)

    return send


def _once(answer: bytes) -> Callable[[socket.socket], None]:
    return lambda connection: connection.sendall(answer)


OK = b"HTTP/1.1 200 OK\r\n"
ENDLESS = {
    "header drips": _forever(b"a", 0.1, OK + b"X: "),
    "100": _forever(b"HTTP/1.1 100 Continue\r\n\r\n"),
    "100 slowly": _forever(b"HTTP/1.1 100 Continue\r\n\r\n", 0.1),
    "trailers": _forever(b"X: y\r\n" * 100, 0.0, OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n"),
    "trailers slowly": _forever(b"X: y\r\n", 0.1, OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n"),
    "body drips": _forever(b" ", 0.1, OK + b"\r\n"),
    "chunks of one": _forever(b"1\r\n \r\n", 0.1, OK + b"Transfer-Encoding: chunked\r\n\r\n"),
    "silence": _forever(b"", 0.1),
}
LIES = {
    "headers without end": _forever(b"X: y\r\n", 0.0, OK),
    "huge": _forever(b" " * 65536, 0.0, OK + b"\r\n"),
    "closed": _once(b""),
    "no HTTP": _once(b"\x1b[31mHELLO S3CR3T\x1b]0;pwn\x07 hi\r\n\r\n"),
    "reason": _once(b"HTTP/1.1 418 \x1b[31mred\x1b]0;S3CR3T\x07\r\n\r\n"),
    "length": _once(OK + b"Content-Length: 999999999999999999999999\r\n\r\n{}"),
    "negative": _once(OK + b"Content-Length: -5\r\n\r\n{}"),
    "many": _once(OK + b"\r\n" + b'{"tp_size":8,"internal_states":[' + b"{}," * 500_000 + b"{}]}"),
    "digits": _once(OK + b'\r\n{"tp_size": ' + b"1" * 4200 + b"}"),
    "deep": _once(OK + b"\r\n" + b"[" * 100_000),
    "elsewhere": _once(b"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\n\r\n"),
}


@contextmanager
def server(talk: Callable[[socket.socket], None]) -> Iterator[str]:
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        try:
            connection, _ = listening.accept()
            with connection:
                connection.recv(65536)
                talk(connection)
        except OSError:
            return

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        listening.close()


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("KVPLAN_API_KEY", "S3CR3T")


@pytest.mark.parametrize("kind", ENDLESS)
def test_an_exchange_ends_at_its_deadline(kind: str) -> None:
    start = time.monotonic()
    with server(ENDLESS[kind]) as url, pytest.raises(InputError) as error:
        read_server_info(url, LIMIT)
    assert time.monotonic() - start < LIMIT + SLACK
    assert "does not answer" in str(error.value)


@pytest.mark.parametrize("kind", LIES)
def test_what_a_server_says_is_bounded_and_not_repeated(kind: str) -> None:
    with server(LIES[kind]) as url, pytest.raises(InputError) as error:
        read_server_info(url, 20)
    said = str(error.value)
    assert "S3CR3T" not in said and said.isprintable()


def test_nothing_goes_on_after_the_deadline() -> None:
    with server(ENDLESS["100"]) as url:
        with pytest.raises(TimeoutError):
            get(url, {}, seconds=LIMIT, most=100)
        end = time.monotonic() + SLACK
        while any(thread.name == "GET" for thread in threading.enumerate()) and time.monotonic() < end:
            time.sleep(0.02)
        assert not any(thread.name == "GET" for thread in threading.enumerate())


def test_no_more_than_asked_for_is_kept() -> None:
    with server(LIES["huge"]) as url:
        assert len(get(url, {}, seconds=20, most=1000).body) == 1001
