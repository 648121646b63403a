"""Sends over HTTP what an `Api` is asked for: management calls, streams and the abort request.

A management call is repeated under the retry policy of `retry`. No redirect is followed, and each
credential goes to its own address only.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from pydantic import SecretStr
from tenacity import AsyncRetrying

from airflow_provider_platform.client.config import PlatformConfig
from airflow_provider_platform.client.errors import (
    PlatformAuthenticationError,
    PlatformNotFoundError,
    RequestName,
)
from airflow_provider_platform.client.http import responses
from airflow_provider_platform.client.http.api_errors import CHAT_ABORT, CHAT_STREAM, DATA_QUERY
from airflow_provider_platform.client.http.retry import tenacity_policy
from airflow_provider_platform.client.known_secrets import KnownSecrets
from airflow_provider_platform.client.operations.operation import Operation
from airflow_provider_platform.client.operations.secret_names import may_hold_secrets, secrets_in
from airflow_provider_platform.client.wire import (
    Connections,
    OpenResponse,
    Stream,
    json_body,
    query_pairs,
    system_proxy_passwords,
    translated,
)

T = TypeVar("T")

Clock = Callable[[], float]
"""Returns Unix time in seconds. A jump of the wall clock does not change it while the process
runs."""


def steady_clock() -> Clock:
    """Return a clock that starts at the wall clock's time."""
    offset = time.time() - time.monotonic()
    return lambda: offset + time.monotonic()


Reload = Callable[[], Awaitable[PlatformConfig]]
"""Reads the configuration again from its source."""
Mask = Callable[[list[str]], Awaitable[None]]
"""Called with each secret that is sent or received for the first time, before the caller can use
it."""

LEAST_SECONDS = 1.0
LARGE_BYTES = 256 * 1024
"""A larger response is parsed in another thread."""


class Transport:
    """Sends requests for one configuration; create and use it on one event loop."""

    def __init__(
        self,
        config: PlatformConfig,
        *,
        reload: Reload | None = None,
        clock: Clock | None = None,
        mask: Mask | None = None,
    ) -> None:
        self.config = config
        self.secrets = KnownSecrets(config.secrets)
        self.secrets.learn(system_proxy_passwords())  # a proxy's error page may quote it
        self.clock = clock or steady_clock()
        self.connections = Connections()
        self._reload = reload
        self._mask = mask
        self._reloading = asyncio.Lock()

    def anew(self) -> Transport:
        """Return a transport with the same configuration and its own connections."""
        return Transport(self.config, reload=self._reload, clock=self.clock, mask=self._mask)

    async def aclose(self) -> None:
        """Close every connection."""
        await self.connections.aclose()

    async def call(self, operation: Operation[T], *, once: bool, deadline: float | None) -> T:
        """Run a management operation. Raises PlatformError (see `client.errors`)."""
        operation = operation.in_deployment(self.config.resolve_deployment_id)
        await self._learn(operation.secrets)
        if once:
            return await self._attempt(operation, deadline)
        policy = tenacity_policy(
            repeatable=operation.repeatable,
            max_attempts=self.config.max_attempts,
            deadline=deadline,
            clock=self.clock,
        )
        async for attempt in AsyncRetrying(**policy):
            with attempt:
                number = attempt.retry_state.attempt_number
                return await self._attempt(operation, deadline, number)
        raise AssertionError("tenacity re-raises the last error")

    async def _attempt(self, operation: Operation[T], deadline: float | None, number: int = 1) -> T:
        used = self.config
        try:
            return await self._perform(operation, deadline)
        except PlatformAuthenticationError:
            if not await self.reload_credentials(used):
                raise
            return await self._perform(operation, deadline)
        except PlatformNotFoundError:
            if operation.method == "DELETE" and number > 1:
                return operation.done_before()
            raise

    async def reload_credentials(self, refused: PlatformConfig) -> bool:
        """Read the credentials again. Return True if they differ from the refused ones. If the
        connection now has another address, its credentials are not used."""
        if self._reload is None:
            return False
        async with self._reloading:
            if self.config.secrets != refused.secrets:
                return True  # another call has read them in the meantime
            fresh = await self._reload()
            if fresh.secrets == self.config.secrets or not fresh.same_endpoints(self.config):
                return False
            self.config = fresh
            self.secrets.learn(fresh.secrets)
            return True

    async def send_chat(
        self,
        path: str,
        body: dict[str, Any],
        *,
        timeout: float | None,
        agent_id: int | str | None,
    ) -> None:
        """Send an abort request, and return if the service confirms it. Raises PlatformError."""
        await self._learn(secrets_in(body))
        url = f"{self.config.require_chat_url(agent_id)}{path}"
        headers = {**self._chat_headers(), "Accept": "application/json"}
        answered = await self._request(
            "POST",
            url,
            headers=headers,
            body=body,
            limit=responses.MAX_ERROR_BYTES,
            name=CHAT_ABORT,
            seconds=timeout,
        )
        responses.read_abort(answered.status, answered.headers, answered.body, now=self.clock())

    async def open_stream(
        self,
        body: dict[str, Any],
        *,
        timeout: float,
        repeatable: bool,
        agent_id: int | str | None = None,
    ) -> Stream:
        """Send a chat request and check the head of its response. The caller reads the body."""
        await self._learn(secrets_in(body))
        return await self._open(
            CHAT_STREAM,
            f"{self.config.require_chat_url(agent_id)}/stream-chat-state",
            headers=self._chat_headers(),
            body=body,
            seconds=timeout,
            check=responses.check_stream_start,
            repeatable=repeatable,
        )

    async def open_data_stream(
        self, url: str, token: SecretStr, body: dict[str, Any], *, timeout: float
    ) -> Stream:
        """Send a query to the data API. The header has only the token, without a scheme."""
        await self._learn([token.get_secret_value()])
        return await self._open(
            DATA_QUERY,
            url,
            headers={"Authorization": token.get_secret_value()},
            body=body,
            seconds=timeout,
            check=responses.check_data_start,
        )

    async def call_data(
        self,
        name: RequestName,
        url: str,
        token: SecretStr,
        body: dict[str, Any],
        *,
        timeout: float,
        repeatable: bool,
    ) -> Any:
        """Send a request to the data API and return the document of its response."""
        await self._learn([token.get_secret_value()])
        answered = await self._request(
            "POST",
            url,
            headers={
                "Authorization": token.get_secret_value(),
                "Accept": "application/json",
            },
            body=body,
            limit=responses.MAX_LIST_BYTES,
            name=name,
            seconds=timeout,
            repeatable=repeatable,
        )
        return responses.read_data_document(
            name, answered.status, answered.headers, answered.body, now=self.clock()
        )

    async def _open(
        self,
        name: RequestName,
        url: str,
        *,
        headers: dict[str, str],
        body: dict[str, Any],
        seconds: float,
        check: Callable[..., None],
        repeatable: bool = False,
    ) -> Stream:
        async with translated(name, url, seconds):
            response = await self._send(
                name,
                "POST",
                url,
                headers={**headers, "Accept": "application/json"},
                body=body,
                seconds=seconds,
                repeatable=repeatable,
            )
            try:
                failed = response.status >= 300
                said = await response.read(name, responses.MAX_ERROR_BYTES) if failed else b""
                check(name, response.status, response.headers, said, now=self.clock())
            except BaseException:
                await response.aclose()
                raise
        return Stream(name, response)

    async def _perform(self, operation: Operation[T], deadline: float | None) -> T:
        base, token = self.config.require_management_url(), self.config.management_token
        bearer = token.get_secret_value() if token else ""
        accepted = "*/*" if operation.binary else "application/json"
        own_accept = any(name.lower() == "accept" for name in operation.headers)
        answered = await self._request(
            operation.method,
            operation.url(base),
            headers={
                **({} if own_accept else {"Accept": accepted}),
                **operation.headers,
                "Authorization": f"Bearer {bearer}",
            },
            params=operation.query,
            body=operation.body,
            limit=responses.max_bytes(operation),
            name=operation.request_name,
            seconds=self._seconds_until(deadline),
            repeatable=operation.repeatable,
        )
        if operation.method == "DELETE" and answered.status == 404 and answered.sent_twice:
            return operation.done_before()
        # What the service quotes of our own credentials goes no further: answers become XComs. In
        # what no model describes it is left for the caller to find.
        secrets = self.secrets if operation.described else None
        read = partial(_read, operation, answered, now=self.clock(), secrets=secrets)
        large = len(answered.body) > LARGE_BYTES and not operation.binary
        answer, received = await asyncio.to_thread(read) if large else read()
        await self._learn(received)
        return answer

    async def _learn(self, secrets: Iterable[str]) -> None:
        """Hide these secrets from now on in errors, and in logs if the caller masks them."""
        new = self.secrets.learn(secrets)
        if new and self._mask is not None:
            await self._mask(new)

    async def _request(
        self,
        method: str,
        url: str,
        *,
        headers: dict[str, str],
        body: Any,
        limit: int,
        name: RequestName,
        params: Mapping[str, Any] | None = None,
        seconds: float | None = None,
        repeatable: bool = False,
    ) -> _Answered:
        seconds = seconds or self.config.request_timeout
        async with translated(name, url, seconds):
            response = await self._send(
                name,
                method,
                url,
                headers=headers,
                body=body,
                seconds=seconds,
                repeatable=repeatable,
                params=params,
            )
            try:
                answer = await response.read(name, limit)
            finally:
                await response.aclose()
        return _Answered(
            response.status, response.headers, answer, response.is_open_ended, response.sent_twice
        )

    async def _send(
        self,
        name: RequestName,
        method: str,
        url: str,
        *,
        headers: dict[str, str],
        body: Any,
        seconds: float,
        repeatable: bool,
        params: Mapping[str, Any] | None = None,
    ) -> OpenResponse:
        content = None if method == "GET" and body is None else json_body(name, body)
        if body is not None:
            headers = {**headers, "Content-Type": "application/json"}
        elif content is not None:  # some front ends answer 411 if it is missing
            headers = {**headers, "Content-Length": "0"}
        return await self.connections.send(
            self.config,
            method,
            url,
            headers=headers,
            content=content,
            seconds=seconds,
            repeatable=repeatable,
            params=query_pairs(params),
        )

    def _seconds_until(self, deadline: float | None) -> float:
        """Return the seconds that one request may take. The last request before a deadline has at
        least a second."""
        if deadline is None:
            return self.config.request_timeout
        return min(self.config.request_timeout, max(LEAST_SECONDS, deadline - self.clock()))

    def _chat_headers(self) -> dict[str, str]:
        config = self.config
        if config.chat_api_key is not None:
            return {"Authorization": f"Api-Key {config.chat_api_key.get_secret_value()}"}
        token = config.chat_service_token
        return {config.chat_service_header: token.get_secret_value()} if token else {}


@dataclass(frozen=True)
class _Answered:
    """A response before parsing; `open_ended` as in `responses.read_response`."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    open_ended: bool
    sent_twice: bool


def _read(
    operation: Operation[T], answered: _Answered, *, now: float, secrets: KnownSecrets | None
) -> tuple[T, list[str]]:
    """Return the answer and the secrets in it."""
    answer = responses.read_response(
        operation,
        answered.status,
        answered.headers,
        answered.body,
        now=now,
        secrets=secrets,
        open_ended=answered.open_ended,
    )
    searched = not operation.binary and may_hold_secrets(answered.body)
    return answer, list(secrets_in(answer)) if searched else []
