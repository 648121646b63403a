"""A played `Api`: each of its methods pauses the work and hands the test what was asked for.

`API` is passed to a function of the client. The coroutine is then driven by `send` and `throw`: it
gives one effect after the other (`Call`, `Sleep`, ...) and gets the outcome of each.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from copy import copy
from dataclasses import dataclass
from types import SimpleNamespace, coroutine
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from airflow_provider_platform.client.api import Api
from airflow_provider_platform.client.errors import PlatformError
from airflow_provider_platform.client.redaction import KnownSecrets

if TYPE_CHECKING:
    from pydantic import SecretStr

    from airflow_provider_platform.client.errors import RequestName
    from airflow_provider_platform.client.operation import Operation

T = TypeVar("T")


@dataclass(frozen=True)
class Call(Generic[T]):
    """`Api.call`"""

    operation: Operation[T]
    once: bool = False
    deadline: float | None = None


@dataclass(frozen=True)
class OpenStream:
    """`Api.open_stream`"""

    body: dict[str, Any]
    timeout: float
    repeatable: bool = False
    agent_id: int | str | None = None


@dataclass(frozen=True)
class OpenDataStream:
    """`Api.open_data_stream`"""

    url: str
    token: SecretStr
    body: dict[str, Any]
    timeout: float


@dataclass(frozen=True)
class CallData:
    """`Api.call_data`"""

    name: RequestName
    url: str
    token: SecretStr
    body: dict[str, Any]
    timeout: float
    repeatable: bool = False


@dataclass(frozen=True)
class ReadStream:
    """`Api.read_stream`"""

    timeout: float


@dataclass(frozen=True)
class CloseStream:
    """`Api.close_stream`"""

    complete: bool = False


@dataclass(frozen=True)
class SendChat:
    """`Api.send_chat`"""

    path: str
    body: dict[str, Any]
    timeout: float | None = None
    agent_id: int | str | None = None


@dataclass(frozen=True)
class Sleep:
    """`Api.sleep`"""

    shortest: float
    longest: float

    @property
    def seconds(self) -> float:
        """The average of such pauses."""
        return (self.shortest + self.longest) / 2


@dataclass(frozen=True)
class Notify:
    """`Api.notify`. The events of `Api.report` are in `PlayedApi.take_reported`."""

    event: object


@dataclass(frozen=True)
class ReloadCredentials:
    """`Api.reload_credentials`"""


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
Program = Coroutine[Effect, Any, T]
"""Work with a `PlayedApi`, before it has begun."""


class PlayedApi(Api):
    """Turns each method into an effect, which `perform` carries out."""

    def __init__(self, state: Any = None, *options: Any) -> None:
        super().__init__(state or SimpleNamespace(config=None, clock=None, secrets=None), *options)
        self._reported: list[object] = []
        if not options:
            self.report = self._reported.append

    def take_reported(self) -> list[object]:
        """Return what was reported since the last call."""
        taken = list(self._reported)
        self._reported.clear()
        return taken

    async def perform(self, effect: Effect) -> Any:
        """The outcome of an effect."""
        raise NotImplementedError

    async def call(
        self, operation: Operation[T], *, once: bool = False, deadline: float | None = None
    ) -> T:
        answer: T = await self.perform(Call(operation, once, deadline))
        return answer

    async def open_stream(
        self,
        body: dict[str, Any],
        *,
        timeout: float,
        repeatable: bool = False,
        agent_id: int | str | None = None,
    ) -> None:
        await self.perform(OpenStream(body, timeout, repeatable, agent_id))

    async def open_data_stream(
        self, url: str, token: SecretStr, body: dict[str, Any], *, timeout: float
    ) -> bool:
        open_ended: bool = await self.perform(OpenDataStream(url, token, body, timeout))
        return open_ended

    async def read_stream(self, timeout: float) -> bytes | None:
        data: bytes | None = await self.perform(ReadStream(timeout))
        return data

    async def close_stream(self, *, complete: bool = False) -> None:
        await self.perform(CloseStream(complete))

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
        return await self.perform(CallData(name, url, token, body, timeout, repeatable))

    async def send_chat(
        self,
        path: str,
        body: dict[str, Any],
        *,
        timeout: float | None = None,
        agent_id: int | str | None = None,
    ) -> None:
        await self.perform(SendChat(path, body, timeout, agent_id))

    async def sleep(self, seconds: float, longest: float | None = None) -> None:
        await self.perform(Sleep(seconds, seconds if longest is None else longest))

    async def reload_credentials(self) -> bool:
        changed: bool = await self.perform(ReloadCredentials())
        return changed


@coroutine
def _hand_over(effect: Effect) -> Generator[Effect, Any, Any]:
    return (yield effect)


async def _hand_over_event(event: object) -> None:
    await _hand_over(Notify(event))


class _HandingOver(PlayedApi):
    async def perform(self, effect: Effect) -> Any:
        return await _hand_over(effect)


API = _HandingOver()
API._hear = _hand_over_event


def api_with(clock: Any, config: Any = None) -> Api:
    """Return `API` with this clock and this configuration."""
    secrets = None if config is None else KnownSecrets(config.secrets)
    api = copy(API)
    api.clock, api.secrets = clock, secrets
    api._state = SimpleNamespace(config=config)
    return api


def play(
    program: Program[T],
    perform: Callable[[Any], Any],
    events: list[Any] | None = None,
    *,
    limit: int = 200_000,
) -> T:
    """Run a program to its end. `perform` gives the outcome of an effect, or raises its error.
    `events` gets what the program notifies and reports."""
    heard: list[Any] = [] if events is None else events
    API.take_reported()
    try:
        effect = program.send(None)
        for _ in range(limit):
            heard += API.take_reported()
            outcome = None
            try:
                if isinstance(effect, Notify):
                    heard.append(effect.event)
                else:
                    outcome = perform(effect)
            except PlatformError as error:
                effect = program.throw(error)
            else:
                effect = program.send(outcome)
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        heard += API.take_reported()
    raise AssertionError(f"the program goes on after {limit} effects")
