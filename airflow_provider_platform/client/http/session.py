"""What one running program does over HTTP: its effects, and the stream that it has open."""

from __future__ import annotations

import asyncio
import random
from typing import Any

from airflow_provider_platform.client.http.stream import Stream
from airflow_provider_platform.client.http.transport import Transport
from airflow_provider_platform.client.operations.program import (
    Call,
    CallData,
    CloseStream,
    Effect,
    OpenDataStream,
    OpenStream,
    ReadStream,
    ReloadCredentials,
    SendChat,
    Sleep,
)


class Session:
    """Performs the effects of one running program, and owns its open stream."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._stream: Stream | None = None
        self._config_used = transport.config

    async def perform(self, effect: Effect) -> Any:
        """The outcome of one effect, `Notify` excepted: telling the caller is the driver's part."""
        match effect:
            case Call():
                return await self._transport.call(effect)
            case OpenStream():
                await self.aclose()
                self._config_used = self._transport.config
                self._stream = await self._transport.open_stream(effect)
                return None
            case OpenDataStream():
                await self.aclose()
                self._stream = await self._transport.open_data_stream(effect)
                return self._stream.is_open_ended
            case CallData():
                return await self._transport.call_data(effect)
            case ReadStream(timeout=seconds):
                if self._stream is None:
                    raise RuntimeError("the program reads a stream that it has not opened")
                return await self._stream.read(seconds)
            case CloseStream(complete=complete):
                if complete and self._stream is not None:
                    await self._stream.drain()
                return await self.aclose()
            case SendChat():
                return await self._transport.send_chat(effect)
            case Sleep(seconds=seconds, spread=spread):
                factor = random.uniform(1 - spread, 1 + spread)  # noqa: S311 - guards nothing
                return await asyncio.sleep(max(0.0, seconds * factor))
            case ReloadCredentials():
                return await self._transport.reload_credentials(self._config_used)
        raise TypeError(f"not an effect: {effect!r}")

    async def aclose(self) -> None:
        """Close the open stream, if any."""
        stream, self._stream = self._stream, None
        if stream is not None:
            await stream.aclose()
