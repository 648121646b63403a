"""Drives a program on an event loop: carries out its effects and sends the outcomes back to it.

Each running program has a `Session`, which owns the stream that the program has open.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator, Callable
from typing import Any, TypeVar

from airflow_provider_platform.client.errors import PlatformError, PlatformInterruptedError
from airflow_provider_platform.client.http.transport import Transport
from airflow_provider_platform.client.known_secrets import KnownSecrets
from airflow_provider_platform.client.operations.operation import Operation
from airflow_provider_platform.client.operations.program import (
    Call,
    CallData,
    CloseStream,
    Effect,
    Notify,
    OpenDataStream,
    OpenStream,
    Program,
    ReadStream,
    ReloadCredentials,
    SendChat,
    Sleep,
    as_program,
)
from airflow_provider_platform.client.wire import Stream

T = TypeVar("T")

INTERRUPTED = "The task was stopped, so it sends no further request."


def _never() -> bool:
    return False


async def drive(
    program: Program[Any], transport: Transport, interrupted: Callable[[], bool] = _never
) -> AsyncGenerator[Any]:
    """Run a program and yield its events. An interrupted or cancelled effect raises
    PlatformInterruptedError inside the program."""
    program = _guarded(program, transport.secrets)
    session = Session(transport)
    try:
        effect = next(program)
        while True:
            try:
                outcome = None
                if isinstance(effect, Notify):
                    yield effect.event
                else:
                    outcome = await _perform(session, effect, interrupted)
            except PlatformError as error:
                effect = program.throw(error)
            else:
                effect = program.send(outcome)
    except StopIteration:
        return
    finally:
        program.close()
        await session.aclose()


def keeping(work: Operation[T] | Program[T], results: list[T]) -> Program[None]:
    """Return the program of an operation or a program. It appends its result to the list. Raises
    PlatformInputError for anything else."""
    program = as_program(work)

    def kept() -> Program[None]:
        result = yield from program
        results.append(result)

    return kept()


class Session:
    """Performs the effects of one running program, and owns its open stream."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport
        self._stream: Stream | None = None
        self._config_used = transport.config

    async def perform(self, effect: Effect) -> Any:
        """Carry out one effect and return its outcome. The driver itself handles `Notify`."""
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


async def _perform(session: Session, effect: Effect, interrupted: Callable[[], bool]) -> Any:
    """Return the outcome of an effect, unless the effect is interrupted first."""
    if interrupted():
        raise PlatformInterruptedError(INTERRUPTED)
    try:
        return await session.perform(effect)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is None or not interrupted():
            raise
        task.uncancel()
        raise PlatformInterruptedError(INTERRUPTED) from None


def _guarded(program: Program[T], secrets: KnownSecrets) -> Program[T]:
    """Return the program, with the secrets removed from the errors that it receives and raises."""
    try:
        effect = next(program)
        while True:
            try:
                outcome = yield effect
            except PlatformError as error:
                secrets.hide_in(error)
                effect = program.throw(error)
            else:
                effect = program.send(outcome)
    except StopIteration as end:
        result: T = end.value
        return result
    except PlatformError as error:
        secrets.hide_in(error)
        raise
    finally:
        program.close()
