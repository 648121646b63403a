"""Drives a program on an event loop: carries out its effects and sends their outcomes back in."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any, TypeVar

from airflow_provider_platform.client.errors import PlatformError, PlatformInterruptedError
from airflow_provider_platform.client.http.session import Session
from airflow_provider_platform.client.http.transport import Transport
from airflow_provider_platform.client.operations.operation import Operation
from airflow_provider_platform.client.operations.program import Effect, Notify, Program, as_program
from airflow_provider_platform.client.redaction import KnownSecrets

T = TypeVar("T")

INTERRUPTED = "The task was ended from outside: it goes no further."


def _never() -> bool:
    return False


async def drive(
    program: Program[Any], transport: Transport, interrupted: Callable[[], bool] = _never
) -> AsyncGenerator[Any]:
    """Carry a program out; what it notifies of. What is interrupted, by a cancel too, raises
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
    """The program of some work; its result is put into the list. Raises PlatformInputError for
    what is no work."""
    program = as_program(work)

    def kept() -> Program[None]:
        result = yield from program
        results.append(result)

    return kept()


async def _perform(session: Session, effect: Effect, interrupted: Callable[[], bool]) -> Any:
    """The outcome of an effect, unless it is interrupted before that is there."""
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
    """The program; the errors that it meets and raises hold no secret."""
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
