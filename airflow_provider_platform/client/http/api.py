"""`Api`: the service as one run of work meets it.

What decides about order, repeats and endings is `async def` with an `Api` as its first argument:
`answer = await api.call(get_report(report_id=101))`. A client makes the `Api`, and calls the
function with it: `client.run(lambda api: follow(api, ids))`. A test passes a played `Api` and needs
no server.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import contextmanager
from copy import copy
from typing import TYPE_CHECKING, Any, Self, TypeVar

from airflow_provider_platform.client.errors import (
    PlatformError,
    PlatformInputError,
    PlatformInterruptedError,
)
from airflow_provider_platform.client.operations.operation import Operation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import SecretStr

    from airflow_provider_platform.client.config import PlatformConfig
    from airflow_provider_platform.client.errors import RequestName
    from airflow_provider_platform.client.http.transport import Clock, Transport
    from airflow_provider_platform.client.known_secrets import KnownSecrets
    from airflow_provider_platform.client.wire import Stream

T = TypeVar("T")

INTERRUPTED = "The task was stopped, so it sends no further request."


async def _ignore(event: object) -> None:
    """Ignore the event."""


def _never() -> bool:
    return False


class Api:
    """The calls, the stream, the clock and the listener of one run of work.

    It owns the stream that the work has open: at most one. Secrets are removed from the errors that
    its methods raise. If `interrupted` returns True, every method that may wait raises
    PlatformInterruptedError, also for what was under way when the task was cancelled.
    """

    def __init__(
        self,
        transport: Transport,
        hear: Callable[[object], Awaitable[None]] = _ignore,
        interrupted: Callable[[], bool] = _never,
    ) -> None:
        self._transport = transport
        self._hear = hear
        self._interrupted = interrupted
        self._streams: list[Stream] = []
        self._config_used = transport.config

    @property
    def config(self) -> PlatformConfig:
        """The configuration in use (credentials may have been read again)."""
        return self._transport.config

    @property
    def clock(self) -> Clock:
        """The clock: Unix time in seconds."""
        return self._transport.clock

    @property
    def secrets(self) -> KnownSecrets:
        """All secrets that were sent or received."""
        return self._transport.secrets

    def hearing(self, hear: Callable[[object], Awaitable[None]]) -> Self:
        """Return this api, whose events are handled by `hear`."""
        other = copy(self)
        other._hear = hear  # noqa: SLF001 - of the same class
        return other

    async def notify(self, event: object) -> None:
        """Report an event to the caller; returns when the caller has handled it. Each function says
        which events it sends."""
        await self._hear(event)

    async def call(
        self, operation: Operation[T], *, once: bool = False, deadline: float | None = None
    ) -> T:
        """Run a management operation and return its typed answer. Raises PlatformError.

        With `once`, the call is attempted once, and the caller decides about repeats. Otherwise the
        retry policy applies. It never waits beyond `deadline` (Unix time).
        """
        with self._step():
            return await self._transport.call(operation, once=once, deadline=deadline)

    async def open_stream(
        self,
        body: dict[str, Any],
        *,
        timeout: float,
        repeatable: bool = False,
        agent_id: int | str | None = None,
    ) -> None:
        """Send a chat request and open its response as a stream; an open stream is closed before.
        `agent_id` names another agent than the connection's.

        With `repeatable`, the request may reach the service twice. Raises PlatformError for an
        error status, HTML, a redirect or a broken connection.
        """
        with self._step():
            await self.aclose()
            self._config_used = self._transport.config
            opened = await self._transport.open_stream(
                body, timeout=timeout, repeatable=repeatable, agent_id=agent_id
            )
            self._streams.append(opened)

    async def open_data_stream(
        self, url: str, token: SecretStr, body: dict[str, Any], *, timeout: float
    ) -> bool:
        """Send a query to the data API at `url` and open its response, as `open_stream` does.
        Returns whether the response is open-ended: only the end of the connection marks its end, so
        a response that was cut looks complete."""
        with self._step():
            await self.aclose()
            opened = await self._transport.open_data_stream(url, token, body, timeout=timeout)
            self._streams.append(opened)
            return opened.is_open_ended

    async def read_stream(self, timeout: float) -> bytes | None:
        """Return the next bytes of the open stream: b"" at its end, and None after `timeout`
        seconds without bytes (the stream is then lost).

        HTTP marks the end; if the response is open-ended, the end of the connection does. Raises
        PlatformTransportError if the connection breaks, PlatformProtocolError if the response has a
        content coding that the request did not allow.
        """
        with self._step():
            if not self._streams:
                raise RuntimeError("no stream is open")
            return await self._streams[0].read(timeout)

    async def close_stream(self, *, complete: bool = False) -> None:
        """Close the open stream, if any. `complete` says that the service has sent everything. The
        stream then waits a moment for the end of the response, so that the connection can be used
        again."""
        with self._step():
            if complete and self._streams:
                await self._streams[0].drain()
            await self.aclose()

    async def call_data(
        self,
        name: RequestName,
        url: str,
        token: SecretStr,
        body: dict[str, Any],
        *,
        timeout: float,
        repeatable: bool = False,
    ) -> Any:
        """Send a request to the data API at `url` whose response is one JSON document. Returns that
        document, or a `DataRefusal` if the deployment itself answers with an error.

        Errors call the request `name`. `timeout` is in seconds. With `repeatable`, the request may
        reach the service twice. It is attempted once. Raises PlatformError for HTML, a redirect, a
        refused token, a broken connection, or an error of a server in front of the deployment.
        """
        with self._step():
            return await self._transport.call_data(
                name, url, token, body, timeout=timeout, repeatable=repeatable
            )

    async def send_chat(
        self,
        path: str,
        body: dict[str, Any],
        *,
        timeout: float | None = None,
        agent_id: int | str | None = None,
    ) -> None:
        """Send a chat request whose response is not a stream (abort). `timeout` is in seconds; None
        means the configuration's. `agent_id` names another agent than the connection's. Raises
        PlatformError."""
        with self._step():
            await self._transport.send_chat(path, body, timeout=timeout, agent_id=agent_id)

    async def sleep(self, seconds: float, *, spread: float = 0.0) -> None:
        """Pause for `seconds`. With `spread` (0 to 1), the pause is at random up to that fraction
        shorter or longer, so that waits which began together do not all poll at the same time."""
        factor = random.uniform(1 - spread, 1 + spread)  # noqa: S311 - guards nothing
        with self._step():
            await asyncio.sleep(max(0.0, seconds * factor))

    async def reload_credentials(self) -> bool:
        """Read the credentials again from their source, and return whether they changed."""
        with self._step():
            return await self._transport.reload_credentials(self._config_used)

    async def aclose(self) -> None:
        """Close the open stream, if any."""
        while self._streams:
            await self._streams.pop().aclose()

    @contextmanager
    def _step(self) -> Iterator[None]:
        """Refuse what an interrupted task asks for, and hide secrets in the errors of the block."""
        if self._interrupted():
            raise PlatformInterruptedError(INTERRUPTED)
        try:
            yield
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or not self._interrupted():
                raise
            task.uncancel()
            raise PlatformInterruptedError(INTERRUPTED) from None
        except PlatformError as error:
            self.secrets.hide_in(error)
            raise


Work = Callable[[Api], Awaitable[T]]
"""What a client runs: it gets the `Api` of this run, and its result is the run's."""


def work_of(work: Operation[T] | Work[T]) -> Work[T]:
    """Return the work; an operation becomes the work that makes this one call. Raises
    PlatformInputError for anything else."""
    if isinstance(work, Operation):
        operation = work
        return lambda api: api.call(operation)
    if not callable(work):
        raise PlatformInputError(
            "Nothing was sent: run needs a function that gets an api and makes calls, not "
            f"{type(work).__name__}. For one operation, write call(operation, ...).",
            field="work",
        )
    return work
