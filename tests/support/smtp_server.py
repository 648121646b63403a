"""A mail server that keeps what it is sent, for tests."""

from __future__ import annotations

import socketserver
import threading
from email import message_from_bytes, policy
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from email.message import EmailMessage


class MailServer(socketserver.ThreadingTCPServer):
    """Takes mails on a port of the loopback; a context manager."""

    allow_reuse_address = True
    daemon_threads = True

    def __init__(self, *, refuses: bool = False) -> None:
        super().__init__(("127.0.0.1", 0), _Session)
        self.mails: list[EmailMessage] = []
        self.refuses = refuses

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def __enter__(self) -> Self:
        # A server looks only so often whether it is to stop.
        serving = threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True)
        serving.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.shutdown()
        self.server_close()


class _Session(socketserver.StreamRequestHandler):
    server: Any

    def handle(self) -> None:
        self._say("220 ready")
        while line := self.rfile.readline().strip():
            command = line.split()[0].upper()
            if command == b"DATA":
                self._say("354 go on")
                self._take()
            elif command == b"QUIT":
                self._say("221 bye")
                return
            elif command == b"MAIL" and self.server.refuses:
                self._say("550 not here")
            else:
                self._say("250 ok")

    def _take(self) -> None:
        received = b""
        while (line := self.rfile.readline()) != b".\r\n":
            received += line.removeprefix(b".") if line.startswith(b"..") else line
        self.server.mails.append(message_from_bytes(received, policy=policy.default))
        self._say("250 taken")

    def _say(self, text: str) -> None:
        self.wfile.write(f"{text}\r\n".encode())
