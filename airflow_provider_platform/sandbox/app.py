"""The ASGI application: both APIs, the control API, pages for people, and the tenant's web page for
all other paths."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from starlette.routing import Router

from airflow_provider_platform.sandbox import data_api, management
from airflow_provider_platform.sandbox.chat import api as chat_api
from airflow_provider_platform.sandbox.chat import evaluations  # noqa: F401 - registers handlers
from airflow_provider_platform.sandbox.control import api as control_api
from airflow_provider_platform.sandbox.http.request_handler import (
    CONTROL,
    RequestHandler,
    read_body,
    refusal,
    until_gone,
)
from airflow_provider_platform.sandbox.http.responses import web_page
from airflow_provider_platform.sandbox.pages import site
from airflow_provider_platform.sandbox.state.credentials import Credentials
from airflow_provider_platform.sandbox.state.server_state import ServerState
from airflow_provider_platform.sandbox.state.warehouse import Warehouse

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

    from airflow_provider_platform.sandbox.state.settings import Settings

log = logging.getLogger(__name__)


class SandboxApp:
    """Serves requests from a server state, which a reset replaces."""

    def __init__(self, base_url: str, credentials: Credentials, settings: Settings) -> None:
        self._base_url = base_url
        self._initial_credentials = credentials
        self._initial_settings = settings
        self._warehouse = Warehouse()
        self.server = self._new_server()
        self._api = Router(
            [*chat_api.routes(), *management.routes(), *data_api.routes()],
            redirect_slashes=False,
            default=_web,
        )
        self._pages = Router(site.routes(lambda: self.server), redirect_slashes=False, default=_web)
        self._control = Router(
            control_api.routes(lambda: self.server, self.reset),
            redirect_slashes=False,
            default=control_api.unknown,
        )

    async def reset(self) -> None:
        """Forget everything, and restore the first settings and credentials."""
        old, self.server = self.server, self._new_server()
        await old.close()

    def _new_server(self) -> ServerState:
        settings = self._initial_settings.model_copy()
        initial = self._initial_credentials
        credentials = Credentials(
            initial.management_token, initial.chat_api_key, initial.api_secret
        )
        return ServerState(self._base_url, credentials, settings, self._warehouse)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = await read_body(receive)
        if body is None:
            return
        refused = refusal(scope)
        if refused is not None:
            await refused(scope, receive, send)
            return
        if site.belongs_here(scope["method"], scope["path"]):
            await self._pages(scope, receive, send)
            return
        if scope["path"].startswith(CONTROL):
            scope["body"] = body
            await self._control(scope, receive, send)
            return
        gone = asyncio.ensure_future(until_gone(receive))
        try:
            await self._handle(scope, body, gone, send)
        finally:
            gone.cancel()

    async def _handle(
        self, scope: Scope, body: bytes, gone: asyncio.Task[None], send: Send
    ) -> None:
        handler = RequestHandler(self.server, scope, body, gone)
        work = asyncio.ensure_future(handler.run(self._api, send))
        self.server.adopt(work)
        await asyncio.wait({work})
        if not work.cancelled() and (error := work.exception()) is not None:
            log.error("a request failed inside the sandbox", exc_info=error)
        transport: asyncio.Transport = scope["state"]["transport"]
        if transport.is_closing():
            await gone


async def _web(scope: Scope, receive: Receive, send: Send) -> None:
    await web_page()(scope, receive, send)
