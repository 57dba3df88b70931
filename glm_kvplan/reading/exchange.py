"""One HTTP GET within one deadline: name, connection, headers, body and trailers together; the answer bounded."""

import io
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from typing import Any, NamedTuple

_PIECE = 1 << 16
_FAILURES = (OSError, HTTPException, ValueError)  # URLError and TimeoutError are OSErrors


class Answer(NamedTuple):
    """An HTTP status and at most one byte more than was asked for."""

    status: int
    body: bytes


def get(url: str, headers: Mapping[str, str], *, seconds: float, most: int) -> Answer:
    """GET `url`, following no redirection: the headers are for this server alone. The environment's proxies are used.

    Raises OSError, HTTPException or ValueError for an exchange that fails, TimeoutError after `seconds`, whatever the
    server sends meanwhile. Then the connection is shut; nothing goes on behind the caller's back but, at most, a name
    being looked up.
    """
    exchange = _Exchange()
    request = urllib.request.Request(url, headers=dict(headers))
    # A daemon: the look-up of a name has no deadline of its own, and cannot be ended from outside.
    thread = threading.Thread(target=exchange.run, args=(request, seconds, most), name="GET", daemon=True)
    thread.start()
    try:
        thread.join(seconds)
        late = thread.is_alive()
    finally:
        exchange.stop()
    if late:
        raise TimeoutError("timed out")
    if exchange.answer is None:
        raise exchange.failure or TimeoutError("timed out")
    return exchange.answer


class _Exchange:
    def __init__(self) -> None:
        self.answer: Answer | None = None
        self.failure: Exception | None = None
        self.stopped = threading.Event()
        self.connections: list[HTTPConnection] = []

    def run(self, request: urllib.request.Request, seconds: float, most: int) -> None:
        opener = urllib.request.build_opener(_Stay, _Http(self), _Https(self))
        try:
            try:
                opened = opener.open(request, timeout=seconds)
            except urllib.error.HTTPError as error:
                opened = error
            with opened as answer:
                self.answer = Answer(answer.status or 0, self.body(answer, most))
        except _FAILURES as error:
            self.failure = error

    def body(self, answer: Any, most: int) -> bytes:
        found = bytearray()
        while len(found) <= most and not self.stopped.is_set():
            piece = answer.read1(_PIECE)
            if not piece:
                break
            found += piece
        return bytes(found[: most + 1])

    def stop(self) -> None:
        self.stopped.set()
        for connection in self.connections:
            sock: Any = connection.sock
            if sock is not None:
                with suppress(OSError):  # of the base class: TLS itself is left to the thread that reads
                    socket.socket.shutdown(sock, socket.SHUT_RDWR)


def _connection(kind: type[HTTPConnection], exchange: _Exchange, host: str, **options: Any) -> HTTPConnection:
    made = kind(host, **options)
    exchange.connections.append(made)
    connect = made.connect

    def connect_unless_stopped() -> None:
        connect()
        if exchange.stopped.is_set():
            made.close()
            raise TimeoutError("timed out")

    made.connect = connect_unless_stopped  # type: ignore[method-assign]
    made.response_class = partial(_Response, exchange)  # type: ignore[assignment]
    return made


class _Response(HTTPResponse):
    """An answer whose every piece asks whether the exchange goes on: a shut socket still gives what had arrived."""

    def __init__(self, exchange: _Exchange, sock: socket.socket, *rest: Any, **options: Any) -> None:
        super().__init__(sock, *rest, **options)
        self.fp = io.BufferedReader(_Pieces(exchange, self.fp))


class _Pieces(io.RawIOBase):
    def __init__(self, exchange: _Exchange, stream: io.BufferedIOBase) -> None:
        self.exchange, self.stream = exchange, stream

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:
        if self.exchange.stopped.is_set():
            raise TimeoutError("timed out")
        return self.stream.readinto1(into)

    def close(self) -> None:
        self.stream.close()
        super().close()


class _Http(urllib.request.HTTPHandler):
    def __init__(self, exchange: _Exchange) -> None:
        super().__init__()
        self.exchange = exchange

    def http_open(self, req: urllib.request.Request) -> Any:
        return self.do_open(partial(_connection, HTTPConnection, self.exchange), req)


class _Https(urllib.request.HTTPSHandler):
    def __init__(self, exchange: _Exchange) -> None:
        super().__init__()
        self.exchange = exchange

    def https_open(self, req: urllib.request.Request) -> Any:
        return self.do_open(partial(_connection, HTTPSConnection, self.exchange), req)


class _Stay(urllib.request.HTTPRedirectHandler):
    """Follows no redirection."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None
