"""Work for the transport, and both clients to run it with."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.client.config import PlatformConfig
from airflow_provider_platform.client.operation import raw_operation
from airflow_provider_platform.client.platform_client import AsyncPlatformClient, PlatformClient

if TYPE_CHECKING:
    from airflow_provider_platform.client.api import Api, Work
    from tests.support.wire.http_server import Server

Run = Callable[..., Any]
TOKEN = "canary-management"
KEY = "canary-chat"
GET = raw_operation("GET", "/v1/x")
POST = raw_operation("POST", "/v1/x", body={"a": 1})
DELETE = raw_operation("DELETE", "/v1/x")


def config_for(server: Server | str, **fields: Any) -> PlatformConfig:
    url = server if isinstance(server, str) else server.url
    chat = {"chat_url": f"{url}/agents/7/chat", "chat_api_key": KEY}
    if "chat_service_token" in fields:
        del chat["chat_api_key"]
    return PlatformConfig.build(host=url, management_token=TOKEN, **{**chat, **fields})


def run_sync(config: PlatformConfig, work: Any, **options: Any) -> Any:
    with PlatformClient(config, **options) as client:
        return client.run(work)


def run_async(config: PlatformConfig, work: Any, **options: Any) -> Any:
    async def run() -> Any:
        reload = options.pop("reload", None)

        async def areload() -> PlatformConfig:
            return reload()  # type: ignore[misc, no-any-return]

        given = {"reload": areload} if reload else {}
        async with AsyncPlatformClient(config, **given, **options) as client:
            return await client.run(work)

    return asyncio.run(run())


def reading(body: Any, *, timeout: float = 20.0) -> Work[list[bytes | None]]:
    """Open the chat stream and read it to its end, or to a silence."""

    async def read(api: Api) -> list[bytes | None]:
        await api.open_stream(body, timeout=timeout)
        pieces: list[bytes | None] = []
        while not pieces or pieces[-1]:
            pieces.append(await api.read_stream(timeout))
        await api.close_stream()
        return pieces

    return read
