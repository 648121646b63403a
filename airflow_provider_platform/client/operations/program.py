"""Programs: what a conversation with the service does, without doing any I/O.

A program is a generator. It yields an effect (a call, a pause, a piece of a stream ...), gets the
effect's outcome sent back, and returns its result; failures are thrown into it where it stands.
The transport interprets the same program for synchronous callers and for an event loop, so every
rule about order, repeats and endings is written once and can be tested with plain values: a test
plays the service by answering effects, and the clock by deciding what `now` says.
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
from airflow_provider_platform.client.operations.operation import Endpoint, Operation

T = TypeVar("T")

Clock = Callable[[], float]
"""Unix time in seconds, not moved by a wall clock that jumps while the process runs."""


def steady_clock() -> Clock:
    """A clock that begins with the wall clock's time."""
    offset = time.time() - time.monotonic()
    return lambda: offset + time.monotonic()


@dataclass(frozen=True)
class Call(Generic[T]):
    """Run a management operation; the outcome is its typed answer or a PlatformError.

    With `once`, one attempt is made and the caller decides about repeats; otherwise the retry
    policy applies, and never waits beyond `deadline` (Unix time).
    """

    operation: Operation[T]
    once: bool = False
    deadline: float | None = None


@dataclass(frozen=True)
class OpenStream:
    """Send a chat request and open its answer; one stream is open at a time.

    `repeatable` says that the request may reach the service twice. Raises a PlatformError for an
    error status, HTML, a redirect or a broken connection.
    """

    body: dict[str, Any]
    timeout: float
    repeatable: bool = False


@dataclass(frozen=True)
class OpenDataStream:
    """Send a query to the data API at `url` and open its answer, as `OpenStream` does. The outcome
    is whether the answer is open-ended: nothing but the end of the connection marks its end, so
    that an answer that was cut looks complete."""

    url: str
    token: SecretStr
    body: dict[str, Any]
    timeout: float


@dataclass(frozen=True)
class CallData:
    """Send a request to the data API at `url`, of which the answer is one JSON document. The
    outcome is that document, or `DataRefusal` where the deployment itself answers with an error.

    `name` is what errors call the request, `timeout` in seconds. `repeatable` says that it may
    reach the service twice. One attempt is made. Raises a PlatformError for HTML, a redirect, a
    refused token, a broken connection, or an error of what is before the deployment.
    """

    name: RequestName
    url: str
    token: SecretStr
    body: dict[str, Any]
    timeout: float
    repeatable: bool = False


@dataclass(frozen=True)
class DataRefusal:
    """The deployment's own answer that a request failed: its status (200 included), and what it
    says, one line."""

    status: int
    reason: str


@dataclass(frozen=True)
class ReadStream:
    """The next bytes of the open stream: b"" at its end, None after `timeout` seconds without any
    (the stream is then closed). Its end is the protocol's own or, of an answer that is open-ended,
    that of the connection. Raises PlatformTransportError where it breaks, PlatformProtocolError
    where its coding is not one that was asked for."""

    timeout: float


@dataclass(frozen=True)
class CloseStream:
    """Close the open stream, if any. `complete` says that the service has told all: its connection
    can be used again once the answer's end has come too, which is waited for a moment."""

    complete: bool = False


@dataclass(frozen=True)
class SendChat:
    """A chat request without a stream (abort); the outcome is None, or a PlatformError.

    `timeout` in seconds, None for the configuration's.
    """

    path: str
    body: dict[str, Any]
    timeout: float | None = None


@dataclass(frozen=True)
class Sleep:
    """Pause for so many seconds; with `spread` (0 to 1) for that part of them less or more, so that
    many waits of one beginning do not poll at once. The average stays."""

    seconds: float
    spread: float = 0.0


@dataclass(frozen=True)
class Notify:
    """Tell the caller, before the program goes on, what has happened (see each program)."""

    event: object


@dataclass(frozen=True)
class ReloadCredentials:
    """Read the credentials again where they come from; the outcome says whether they changed."""


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
    """The program of some work: an operation's is its one call. Raises PlatformInputError for what
    is neither an operation nor a program."""
    if isinstance(work, Operation):
        return call(work)
    other: object = work
    if not isinstance(other, Generator):
        raise PlatformInputError(f"Nothing was sent: {_no_work(other)}.", field="work")
    return work


def _no_work(given: object) -> str:
    if isinstance(given, Endpoint):
        return f"{given.name} was not called. Write run({given.usage})"
    return (
        "run needs an operation, for example run(get_report(report_id=101)), or a program of the "
        f"client, not {type(given).__name__}"
    )


def call(
    operation: Operation[T], *, once: bool = False, deadline: float | None = None
) -> Program[T]:
    """Run an operation inside a program, keeping its type: `answer = yield from call(...)`."""
    answer: T = yield Call(operation, once=once, deadline=deadline)
    return answer


def with_events(program: Program[T], made_of: Callable[[object], Iterable[object]]) -> Program[T]:
    """The program with other events: for each event, it notifies of those that `made_of` returns
    for the event."""
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
