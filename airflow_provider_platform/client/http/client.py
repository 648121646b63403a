"""The client's two doors: `PlatformClient` for synchronous code, `AsyncPlatformClient` for loops.

Both run operations and programs. There is one transport, on an event loop; the synchronous client
keeps such a loop in a thread of its own, so that every time-out and rule is the same, and steps
the program itself, so that `Notify` reaches the caller's own thread.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import ExitStack, aclosing, closing, contextmanager
from functools import partial
from typing import Any, Self, TypeVar

from anyio.from_thread import BlockingPortal, start_blocking_portal
from anyio.to_thread import run_sync

from airflow_provider_platform.client.config import PlatformConfig
from airflow_provider_platform.client.errors import PlatformError, PlatformInterruptedError
from airflow_provider_platform.client.http.session import Session
from airflow_provider_platform.client.http.transport import Transport
from airflow_provider_platform.client.operations.operation import Operation
from airflow_provider_platform.client.operations.program import Clock, Effect, Notify, Program, call
from airflow_provider_platform.client.redaction import KnownSecrets

T = TypeVar("T")
OnEvent = Callable[[Any], None]


def _ignore(event: Any) -> None:
    """The listener of those who do not listen."""


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


def _keeping(work: Operation[T] | Program[T], results: list[T]) -> Program[None]:
    """The program of some work; its result is put into the list."""
    result = yield from (call(work) if isinstance(work, Operation) else work)
    results.append(result)


async def _in_thread(mask: Callable[[list[str]], None], secrets: list[str]) -> None:
    await run_sync(mask, secrets)


class _Client:
    """What both clients tell of themselves."""

    _transport: Transport

    @property
    def config(self) -> PlatformConfig:
        """The configuration in use (credentials may have been read again)."""
        return self._transport.config

    @property
    def secrets(self) -> KnownSecrets:
        """Every secret that this client has sent or received."""
        return self._transport.secrets

    @contextmanager
    def redacted_errors(self) -> Iterator[None]:
        """Errors that are raised inside hold none of this client's secrets."""
        try:
            yield
        except Exception as error:
            self.secrets.hide_in(error)
            raise

    @property
    def clock(self) -> Clock:
        """Unix time as this client sees it."""
        return self._transport.clock


class AsyncPlatformClient(_Client):
    """The client of an event loop; `async with`, or `aclose` when done.

    `reload` reads the configuration again, `mask` hears of every secret that is sent or received
    for the first time, the configuration's excepted.
    """

    def __init__(
        self,
        config: PlatformConfig,
        *,
        reload: Callable[[], Awaitable[PlatformConfig]] | None = None,
        clock: Clock | None = None,
        mask: Callable[[list[str]], Awaitable[None]] | None = None,
    ) -> None:
        self._transport = Transport(config, reload=reload, clock=clock, mask=mask)

    async def run(self, work: Operation[T] | Program[T], on_event: OnEvent = _ignore) -> T:
        """Run an operation or a program to its end; `on_event` hears what it notifies of."""
        results: list[T] = []
        async with aclosing(self.events(_keeping(work, results))) as events:
            async for event in events:
                on_event(event)
        return results[0]

    async def events(self, program: Program[Any]) -> AsyncGenerator[Any]:
        """Run a program to its end, one step at a time: what it notifies of, as it is wanted."""
        program = _guarded(program, self.secrets)
        session = Session(self._transport)
        try:
            effect = next(program)
            while True:
                try:
                    outcome = None
                    if isinstance(effect, Notify):
                        yield effect.event
                    else:
                        outcome = await session.perform(effect)
                except PlatformError as error:
                    effect = program.throw(error)
                else:
                    effect = program.send(outcome)
        except StopIteration:
            return
        finally:
            program.close()
            await session.aclose()

    async def aclose(self) -> None:
        """Close every connection."""
        await self._transport.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()


class PlatformClient(_Client):
    """The client of synchronous code; `with`, or `close` when done.

    `reload` and `mask` are those of `AsyncPlatformClient`, called in a thread of their own. Its
    event loop runs in a thread that starts with the first use. A signal handler may raise
    through `run`: what was under way is cancelled. It may also call `interrupt`.
    """

    def __init__(
        self,
        config: PlatformConfig,
        *,
        reload: Callable[[], PlatformConfig] | None = None,
        clock: Clock | None = None,
        mask: Callable[[list[str]], None] | None = None,
    ) -> None:
        self._transport = Transport(
            config,
            reload=partial(run_sync, reload) if reload else None,
            clock=clock,
            mask=partial(_in_thread, mask) if mask else None,
        )
        self._stack = ExitStack()
        self._portal: BlockingPortal | None = None
        self._under_way: Future[Any] | None = None
        self._interrupted = False

    def run(self, work: Operation[T] | Program[T], on_event: OnEvent = _ignore) -> T:
        """Run an operation or a program to its end; `on_event` hears what it notifies of."""
        results: list[T] = []
        with closing(self.events(_keeping(work, results))) as events:
            for event in events:
                on_event(event)
        return results[0]

    def events(self, program: Program[Any]) -> Generator[Any]:
        """Run a program to its end, one step at a time: what it notifies of, as it is wanted."""
        program = _guarded(program, self.secrets)
        session = Session(self._transport)
        try:
            effect = next(program)
            while True:
                try:
                    outcome = None
                    if isinstance(effect, Notify):
                        yield effect.event
                    else:
                        outcome = self._perform(session, effect)
                except PlatformError as error:
                    effect = program.throw(error)
                else:
                    effect = program.send(outcome)
        except StopIteration:
            return
        finally:
            program.close()
            self._on_loop(session.aclose)

    def interrupt(self) -> None:
        """Have every program of this client end: what it does now, and whatever it wants to do
        next, raises PlatformInterruptedError. For signal handlers and other threads."""
        self._interrupted = True
        if self._under_way is not None:
            self._under_way.cancel()

    def close(self) -> None:
        """Close every connection and end the loop's thread."""
        if self._portal is not None:
            self._on_loop(self._transport.aclose)
            self._portal = None
            self._stack.close()

    def _perform(self, session: Session, effect: Effect) -> Any:
        """The outcome of an effect, unless the client is interrupted before it is there."""
        try:
            if self._is_interrupted():
                raise CancelledError
            self._under_way = future = self._start(session.perform, effect)
            if self._is_interrupted():  # between the two lines above
                future.cancel()
            return self._result(future)
        except CancelledError:
            if not self._is_interrupted():
                raise
            raise PlatformInterruptedError(
                "The task was ended from outside: it goes no further."
            ) from None
        finally:
            self._under_way = None

    def _is_interrupted(self) -> bool:
        return self._interrupted

    def _on_loop(self, function: Callable[..., Awaitable[Any]], *args: Any) -> Any:
        return self._result(self._start(function, *args))

    def _start(self, function: Callable[..., Awaitable[Any]], *args: Any) -> Future[Any]:
        if self._portal is None:
            self._portal = self._stack.enter_context(start_blocking_portal())
        return self._portal.start_task_soon(function, *args)

    def _result(self, future: Future[Any]) -> Any:
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
