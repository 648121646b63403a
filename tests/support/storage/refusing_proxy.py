"""An HTTP proxy before an S3 server, which answers chosen requests with an error of S3."""

from __future__ import annotations

import http.client
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Self
from urllib.parse import urlsplit

ERROR = """<?xml version="1.0" encoding="UTF-8"?>
<Error><Code>{code}</Code><Message>{message}</Message><RequestId>4442587FB7D0A2F9</RequestId></Error>
"""


@dataclass(frozen=True)
class Refusal:
    """Requests of a method whose query has a text are answered with an error."""

    method: str
    query: str
    status: int
    code: str
    message: str = "The server says so."


class RefusingProxy:
    """Passes requests on to a server on loopback, but for those of `refusals`."""

    def __init__(self, server: str) -> None:
        self.refusals: list[Refusal] = []
        self.refused = 0
        address, proxy = urlsplit(server), self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def handle_one_request(self) -> None:
                try:
                    super().handle_one_request()
                except OSError:
                    self.close_connection = True

            def pass_on(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                refusal = proxy.refusal(self.command, urlsplit(self.path).query)
                if refusal is not None:
                    text = ERROR.format(code=refusal.code, message=refusal.message).encode()
                    self.answer(refusal.status, [("Content-Type", "application/xml")], text)
                    return
                server = http.client.HTTPConnection(str(address.hostname), address.port)
                try:
                    server.request(self.command, self.path, body, dict(self.headers))
                    answer = server.getresponse()
                    headers = [
                        (name, value)
                        for name, value in answer.getheaders()
                        if name.lower() not in ("connection", "content-length", "transfer-encoding")
                    ]
                    self.answer(answer.status, headers, answer.read())
                finally:
                    server.close()

            def answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
                self.send_response_only(status)
                for name, value in headers:
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = pass_on  # noqa: N815

            def log_message(self, *said: object) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_port}"

    def refusal(self, method: str, query: str) -> Refusal | None:
        """The refusal that a request meets."""
        for one in self.refusals:
            if one.method == method and one.query in query:
                self.refused += 1
                return one
        return None

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *error: object) -> None:
        self._server.shutdown()
        self._server.server_close()
