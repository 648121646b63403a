"""A tiny HTTP server for tests of the transport: each test writes every byte of an answer."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl

WAIT = 30.0
"""Seconds after which a server that waits for its client gives up."""


@dataclass
class Request:
    """A request as it came."""

    method: str
    target: str
    headers: dict[str, str]
    body: bytes


Answer = Callable[["Exchange"], None]


class Exchange:
    """One request and the connection that it came on."""

    def __init__(self, connection: socket.socket, request: Request) -> None:
        self.connection = connection
        self.request = request

    def send(self, data: bytes) -> None:
        self.connection.sendall(data)

    def reset(self) -> None:
        """Break the connection with a TCP reset."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    def wait_for_the_client_to_leave(self) -> bool:
        """Whether the client closed the connection."""
        self.connection.settimeout(WAIT)
        try:
            return self.connection.recv(1) == b""
        except ConnectionError:
            return True


def answer(
    status: int = 200,
    body: bytes = b"{}",
    headers: Mapping[str, str] | None = None,
    *,
    length: int | None = None,
) -> Answer:
    """An answer with a body; with `length` the head promises so many bytes, whatever comes."""
    fields = {
        "Content-Type": "application/json",
        "Content-Length": str(len(body) if length is None else length),
        "Connection": "close",
        **(headers or {}),
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    data = f"HTTP/1.1 {status} Said\r\n{head}\r\n".encode() + body
    return lambda exchange: exchange.send(data)


STREAM_HEAD = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
    b"Transfer-Encoding: chunked\r\nConnection: close\r\n%s\r\n"
)


def chunk(data: bytes) -> bytes:
    """A piece of a body of unknown length; b"" ends it."""
    return b"%x\r\n%s\r\n" % (len(data), data)


def streamed(*pieces: bytes, headers: bytes = b"", then: Answer | None = None) -> Answer:
    """A chunked answer; what comes after its last piece instead of the last chunk, if anything."""

    def respond(exchange: Exchange) -> None:
        exchange.send(STREAM_HEAD % headers + b"".join(chunk(piece) for piece in pieces))
        if then is None:
            exchange.send(chunk(b""))
        else:
            then(exchange)

    return respond


@dataclass
class Server:
    """What the server is to answer, in order, and what it was asked."""

    port: int
    answers: list[Answer] = field(default_factory=list)
    requests: list[Request] = field(default_factory=list)
    tls: ssl.SSLContext | None = None

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"


@contextmanager
def serving(*answers: Answer, tls: ssl.SSLContext | None = None) -> Iterator[Server]:
    """A server on a free loopback port; each connection serves one request."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        server = Server(listener.getsockname()[1], list(answers), tls=tls)
        threads: list[threading.Thread] = []
        accepting = threading.Thread(target=_accept, args=(listener, server, threads))
        accepting.start()
        try:
            yield server
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            accepting.join(WAIT)
            for thread in threads:
                thread.join(WAIT)


def _accept(listener: socket.socket, server: Server, threads: list[threading.Thread]) -> None:
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        thread = threading.Thread(target=_serve, args=(connection, server))
        threads.append(thread)
        thread.start()


def _serve(connection: socket.socket, server: Server) -> None:
    if server.tls is not None:
        try:
            connection = server.tls.wrap_socket(connection, server_side=True)
        except OSError:
            connection.close()
            return  # the client does not trust us
    with connection:
        request = _read(connection)
        if request is None:
            return
        server.requests.append(request)
        respond = server.answers.pop(0) if server.answers else answer(599)
        try:
            respond(Exchange(connection, request))
        except OSError:
            return  # the client has left


def _read(connection: socket.socket) -> Request | None:
    connection.settimeout(WAIT)
    with connection.makefile("rb") as file:
        start = file.readline().decode("latin-1").split()
        if len(start) != 3 or not start[2].startswith("HTTP/"):
            return None
        method, target, _ = start
        headers = {}
        while (line := file.readline()) != b"\r\n":
            if not line:
                return None  # the client has left
            name, _, value = line.decode("latin-1").partition(":")
            headers[name.lower()] = value.strip()
        body = file.read(int(headers.get("content-length", 0)))
    return Request(method, target, headers, body)


def closed_port() -> int:
    """A loopback port that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])
