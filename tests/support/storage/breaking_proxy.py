"""A TCP proxy that ends connections after so many bytes from the client, until it is mended."""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Self
from urllib.parse import urlsplit


class BreakingProxy:
    """Passes bytes on to a server on loopback; with `breaks_after` it cuts every connection whose
    client has sent more than that."""

    def __init__(self, server: str) -> None:
        self._server = ("127.0.0.1", urlsplit(server).port or 80)
        self.breaks_after: int | None = None
        self.broken = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._open: list[socket.socket] = []

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._listener.close()
        for one in self._open:
            _close(one)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._server)
                self._open += [client, server]
                for way in ((client, server, True), (server, client, False)):
                    threading.Thread(target=self._pass, args=way, daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, counted: bool) -> None:
        passed = 0
        with suppress(OSError):
            while data := source.recv(65536):
                passed += len(data)
                if counted and self.breaks_after is not None and passed > self.breaks_after:
                    self.broken += 1
                    break
                target.sendall(data)
        _close(source)
        _close(target)


def _close(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
