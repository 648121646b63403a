"""The server's side of TLS with its records in the hands of a test: alerts and bad records."""

from __future__ import annotations

import io
import ssl
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    import socket
    from types import TracebackType

_BAD_RECORD = b"\x17\x03\x03\x00\x20" + bytes(32)
"""A record of application data that no key decrypts."""


class SpoilableTls:
    """Stands for an `ssl.SSLContext` of a server."""

    def __init__(self, context: ssl.SSLContext) -> None:
        self._context = context

    def wrap_socket(self, raw: socket.socket, *, server_side: bool) -> SpoilableSocket:
        return SpoilableSocket(raw, self._context)


class SpoilableSocket(io.RawIOBase):
    """What the server uses of a TLS socket, and what it can do wrong."""

    def __init__(self, raw: socket.socket, context: ssl.SSLContext) -> None:
        self._raw = raw
        self._in, self._out = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._in, self._out, server_side=True)
        self._until_done(self._tls.do_handshake)

    def sendall(self, data: bytes) -> None:
        self._until_done(lambda: self._tls.write(data))

    def send_alert(self) -> None:
        """Send the fatal alert with which TLS answers a record that it cannot read."""
        self._in.write(_BAD_RECORD)
        try:
            self._tls.read(1)
        except ssl.SSLError:
            self._raw.sendall(self._out.read())

    def send_bad_record(self) -> None:
        """Send a record that the client cannot read."""
        self._raw.sendall(_BAD_RECORD)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data: bytes = self._until_done(lambda: self._tls.read(len(buffer)))
        buffer[: len(data)] = data
        return len(data)

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(_Unclosed(self))

    def settimeout(self, seconds: float) -> None:
        self._raw.settimeout(seconds)

    def close(self) -> None:
        self._raw.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _until_done(self, step: Any) -> Any:
        while True:
            try:
                outcome = step()
            except ssl.SSLWantReadError:
                self._raw.sendall(self._out.read())
                data = self._raw.recv(65536)
                if not data:
                    raise ConnectionError("the client has left") from None
                self._in.write(data)
            else:
                self._raw.sendall(self._out.read())
                return outcome


class _Unclosed(io.RawIOBase):
    """A file over the connection that does not close it."""

    def __init__(self, connection: SpoilableSocket) -> None:
        self._connection = connection

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._connection.readinto(buffer)
