"""Programs: generators that decide each step of a conversation with the service, without I/O.

A program yields an effect (a call, a pause, the next bytes of a stream) and receives the effect's
outcome. If the effect fails, the error is raised at the `yield`. At the end the program returns its
result. `client/http/driver.py` runs the same program for synchronous callers and on an event loop.
So each rule about order, repeats and endings is written once, and a test needs no server: it
answers the effects itself, and sets the clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import SecretStr

from airflow_provider_platform.client.errors import (
    PlatformError,
    PlatformInputError,
    RequestName,
)
from airflow_provider_platform.client.operations.operation import Operation

T = TypeVar("T")

Clock = Callable[[], float]
"""Returns Unix time in seconds. A jump of the wall clock does not change it while the process
runs."""


def steady_clock() -> Clock:
    """Return a clock that starts at the wall clock's time."""
    offset = time.time() - time.monotonic()
    return lambda: offset + time.monotonic()


@dataclass(frozen=True)
class Call(Generic[T]):
    """Run a management operation; the outcome is its typed answer or a PlatformError.

    With `once`, the call is attempted once, and the caller decides about repeats. Otherwise the
    retry policy applies. It never waits beyond `deadline` (Unix time).
    """

    operation: Operation[T]
    once: bool = False
    deadline: float | None = None


@dataclass(frozen=True)
class OpenStream:
    """Send a chat request and open its response as a stream. Only one stream is open at a time.
    `agent_id` names another agent than the connection's.

    With `repeatable`, the request may reach the service twice. Raises a PlatformError for an error
    status, HTML, a redirect or a broken connection.
    """

    body: dict[str, Any]
    timeout: float
    repeatable: bool = False
    agent_id: int | str | None = None


@dataclass(frozen=True)
class OpenDataStream:
    """Send a query to the data API at `url` and open its response, as `OpenStream` does. The
    outcome is whether the response is open-ended: only the end of the connection marks its end, so
    a response that was cut looks complete."""

    url: str
    token: SecretStr
    body: dict[str, Any]
    timeout: float


@dataclass(frozen=True)
class CallData:
    """Send a request to the data API at `url` whose response is one JSON document. The outcome is
    that document, or a `DataRefusal` if the deployment itself answers with an error.

    Errors call the request `name`. `timeout` is in seconds. With `repeatable`, the request may
    reach the service twice. It is attempted once. Raises a PlatformError for HTML, a redirect, a
    refused token, a broken connection, or an error of a server in front of the deployment.
    """

    name: RequestName
    url: str
    token: SecretStr
    body: dict[str, Any]
    timeout: float
    repeatable: bool = False


@dataclass(frozen=True)
class DataRefusal:
    """The deployment's own answer that a request failed: its status (which can be 200), and its
    reason in one line."""

    status: int
    reason: str


@dataclass(frozen=True)
class ReadStream:
    """Read the next bytes of the open stream. The outcome is b"" at the end of the stream, and None
    after `timeout` seconds without bytes (the stream is then closed). HTTP marks the end; if the
    response is open-ended, the end of the connection does. Raises PlatformTransportError if the
    connection breaks, PlatformProtocolError if the response has a content coding that the request
    did not allow."""

    timeout: float


@dataclass(frozen=True)
class CloseStream:
    """Close the open stream, if any. `complete` says that the service has sent everything. The
    stream then waits a moment for the end of the response, so that the connection can be used
    again."""

    complete: bool = False


@dataclass(frozen=True)
class SendChat:
    """Send a chat request whose response is not a stream (abort). The outcome is None, or a
    PlatformError. `agent_id` names another agent than the connection's.

    `timeout` is in seconds; None means the configuration's.
    """

    path: str
    body: dict[str, Any]
    timeout: float | None = None
    agent_id: int | str | None = None


@dataclass(frozen=True)
class Sleep:
    """Pause for `seconds`. With `spread` (0 to 1), the pause is at random up to that fraction
    shorter or longer, so that waits which began together do not all poll at the same time."""

    seconds: float
    spread: float = 0.0


@dataclass(frozen=True)
class Notify:
    """Report an event to the caller before the program continues. Each program says which events it
    sends."""

    event: object


@dataclass(frozen=True)
class ReloadCredentials:
    """Read the credentials again from their source. The outcome says whether they changed."""


Effect = (
    Call[Any]
    | OpenStream
    | OpenDataStream
    | CallData
    | ReadStream
    | CloseStream
    | SendChat
    | Sleep
    | Notify
    | ReloadCredentials
)
Program = Generator[Effect, Any, T]


def as_program(work: Operation[T] | Program[T]) -> Program[T]:
    """Return a program: an operation becomes the program that makes this one call. Raises
    PlatformInputError if `work` is neither an operation nor a program."""
    if isinstance(work, Operation):
        return call(work)
    other: object = work
    if not isinstance(other, Generator):
        raise PlatformInputError(f"Nothing was sent: {_no_work(other)}.", field="work")
    return work


def _no_work(work: object) -> str:
    return f"run needs a call or a program, not {type(work).__name__}. For one operation use call"


def call(
    operation: Operation[T], *, once: bool = False, deadline: float | None = None
) -> Program[T]:
    """Run an operation inside a program, keeping its type: `answer = yield from call(...)`."""
    answer: T = yield Call(operation, once=once, deadline=deadline)
    return answer


def with_events(program: Program[T], made_of: Callable[[object], Iterable[object]]) -> Program[T]:
    """Return the program with other events: each event is replaced by the events that `made_of`
    returns for it."""
    try:
        effect = next(program)
        while True:
            if isinstance(effect, Notify):
                for event in made_of(effect.event):
                    yield Notify(event)
                effect = program.send(None)
                continue
            try:
                outcome = yield effect
            except PlatformError as error:
                effect = program.throw(error)
            else:
                effect = program.send(outcome)
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        program.close()
