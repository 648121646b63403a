"""Runs the sandbox on a loopback port, in a thread of this process."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from typing import TYPE_CHECKING, Any, Self

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from airflow_provider_platform.sandbox import connection
from airflow_provider_platform.sandbox.app import SandboxApp
from airflow_provider_platform.sandbox.connection import CHAT_PATH
from airflow_provider_platform.sandbox.control.client import SandboxControl
from airflow_provider_platform.sandbox.state.credentials import Credentials, service_token
from airflow_provider_platform.sandbox.state.settings import Settings

if TYPE_CHECKING:
    from types import TracebackType

LOOPBACK = ("127.0.0.1", "::1", "localhost")


class _Protocol(H11Protocol):
    """HTTP/1.1 that gives the application access to its connection, so that a fault can cut it."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.app_state = {**self.app_state, "transport": transport}


class _Server(uvicorn.Server):
    """Reports when it listens, and ends all streams before it stops."""

    def __init__(self, app: SandboxApp) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                loop="asyncio",
                http=_Protocol,
                ws="none",
                lifespan="off",
                log_config=None,
                log_level="warning",
                access_log=False,
                timeout_keep_alive=60,
                backlog=2048,
            )
        )
        self.listening = threading.Event()
        self._sandbox = app

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.listening.set()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._sandbox.server.close()
        await super().shutdown(sockets)


class Sandbox:
    """The platform on a free loopback port, until ``stop`` or the end of the ``with`` block.

    Keyword arguments are settings (see ``Settings``); a reset returns to them.
    """

    def __init__(self, *, host: str = "127.0.0.1", port: int = 0, **settings: Any) -> None:
        if host not in LOOPBACK:
            raise ValueError(f"the sandbox listens on loopback only, not on {host!r}")
        self._host, self._port = host, port
        self._settings = Settings()
        self._settings.change(settings)
        self._initial = Credentials()
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None
        self.url = ""
        """Address of the server, as ``http://127.0.0.1:PORT``; set by ``start``."""

    def start(self) -> Self:
        """Listen and return; raises ``OSError`` if the port is taken."""
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        # asyncio sends at once (TCP_NODELAY) only on sockets that name their protocol. On others,
        # the body of an answer waits 40 ms for an acknowledgement of its headers.
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((self._host, self._port))
        except OSError:
            listener.close()
            raise
        host = f"[{self._host}]" if family == socket.AF_INET6 else self._host
        self.url = f"http://{host}:{listener.getsockname()[1]}"
        server = _Server(SandboxApp(self.url, self._initial, self._settings))
        thread = threading.Thread(
            target=lambda: asyncio.run(server.serve(sockets=[listener])),
            name="platform-sandbox",
            daemon=True,
        )
        thread.start()
        while not server.listening.wait(0.1):
            if not thread.is_alive():
                raise RuntimeError("the sandbox did not start; its error is above")
        self._server, self._thread = server, thread
        return self

    def stop(self) -> None:
        """End all streams and the server."""
        if self._server is None or self._thread is None:
            return
        self._server.should_exit = self._server.force_exit = True
        self._thread.join()
        self._server = self._thread = None

    @property
    def management_url(self) -> str:
        """Address of the management API, ending in ``/api``."""
        return f"{self.url}/api"

    @property
    def chat_url(self) -> str:
        """Address of the agent's chat API, ending in ``/chat``."""
        return self.url + CHAT_PATH

    @property
    def management_token(self) -> str:
        """The first token. After a rotation, ``control.info()`` has the current token."""
        return self._initial.management_token

    @property
    def chat_api_key(self) -> str:
        """The first chat key. After a rotation, ``control.info()`` has the current key."""
        return self._initial.chat_api_key

    @property
    def control(self) -> SandboxControl:
        """A client for faults, breakpoints, settings and counters."""
        return SandboxControl(self.url)

    def service_token(self, **claims: Any) -> str:
        """Return a signed service token. It has the scope chat and an ``externalId`` unless
        ``claims`` say otherwise. A claim of None is left out.
        """
        return service_token(self._initial.api_secret, **claims)

    def connection(self, **overrides: Any) -> dict[str, Any]:
        """An Airflow connection in JSON form (see ``connection.connection``)."""
        return connection.connection(self.url, self._initial, **overrides)

    def connection_json(self, **overrides: Any) -> str:
        """The value of an ``AIRFLOW_CONN_PLATFORM_DEFAULT`` variable."""
        return json.dumps(self.connection(**overrides))

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()
