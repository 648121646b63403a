"""A tiny HTTP server that keeps its connections, and closes them when a test says so."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import ssl

WAIT = 30.0
Reply = Callable[["Connection", bytes], bytes]


@dataclass
class Connection:
    """One connection: its number, from 1, and the requests that came on it as `METHOD /path`."""

    number: int
    socket: socket.socket
    requests: list[str] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)
    """Set once the client, or the server, has closed it."""


@dataclass
class KeepingServer:
    """What came on which connection. `vanish` holds, for each connection in turn, after how many
    answers it is closed in the moment in which the next request arrives, unanswered."""

    port: int
    reply: Reply
    tls: ssl.SSLContext | None = None
    vanish: list[int] = field(default_factory=list)
    connections: list[Connection] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}"

    @property
    def requests(self) -> list[str]:
        return [request for one in self.connections for request in one.requests]

    def close_all(self) -> None:
        """Close every connection in order, as a service does with those that are idle."""
        for one in self.connections:
            with suppress(OSError):
                one.socket.shutdown(socket.SHUT_RDWR)


def plain(body: bytes = b"[1]") -> Reply:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    return lambda connection, request: head % len(body) + body


@contextmanager
def keeping(
    reply: Reply | None = None, *, tls: ssl.SSLContext | None = None, vanish: Any = ()
) -> Iterator[KeepingServer]:
    """A server on a free loopback port; it closes a connection only on request."""
    with socket.create_server(("127.0.0.1", 0), backlog=512) as listener:
        port = listener.getsockname()[1]
        server = KeepingServer(port, reply or plain(), tls, list(vanish))
        accepting = threading.Thread(target=_accept, args=(listener, server), daemon=True)
        accepting.start()
        try:
            yield server
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            accepting.join(WAIT)
            server.close_all()


@contextmanager
def ended(one: Connection) -> Iterator[None]:
    try:
        yield
    finally:
        one.ended.set()


def _accept(listener: socket.socket, server: KeepingServer) -> None:
    while True:
        try:
            raw, _ = listener.accept()
        except OSError:
            return
        threading.Thread(target=_serve, args=(raw, server), daemon=True).start()


def _serve(raw: socket.socket, server: KeepingServer) -> None:
    try:
        stream = server.tls.wrap_socket(raw, server_side=True) if server.tls else raw
        one = Connection(len(server.connections) + 1, stream)
        server.connections.append(one)
        answers = server.vanish.pop(0) if server.vanish else None
        with ended(one), stream, stream.makefile("rb") as file:
            while request := _read(file):
                one.requests.append(request.split(b" HTTP/")[0].decode())
                if answers is not None and len(one.requests) > answers:
                    return
                stream.sendall(server.reply(one, request))
    except (OSError, ValueError):
        return  # the client has left, or the test is over


def _read(file: Any) -> bytes:
    head = b"".join(takewhile(lambda line: line not in (b"", b"\r\n"), iter(file.readline, None)))
    lengths = [line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
    body = file.read(int(lengths[0].split(b":")[1])) if lengths else b""
    return bytes(head + body) if head.startswith((b"GET", b"POST", b"PUT", b"DELETE")) else b""
