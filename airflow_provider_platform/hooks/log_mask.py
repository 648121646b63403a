"""The secrets that Airflow masks in its logs.

`PlatformConfig.secrets` says which values of a connection are secrets, and `client.models`
says it for requests and responses. This package redacts what it logs and stores
(`client.redaction`). Airflow's mask is for what a DAG author prints, for example a token that a
method of the hook returned. For each call, Airflow compiles one pattern of all secrets again, in
the task and once more in its supervisor or on the triggerer's loop. So a process masks each secret
once and as it is, all secrets of one response together, at most `MOST_MASKED` of responses, and
never on an event loop.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import TYPE_CHECKING

from airflow_provider_platform import _airflow

if TYPE_CHECKING:
    from collections.abc import Iterable


log = logging.getLogger(__name__)

MOST_MASKED = 100
"""Secrets of responses that Airflow is given in one process: it compiles these in half a second."""

_NOT_MASKED = (
    "A secret of this connection or of a response could not be masked in Airflow's logs. This "
    "package still hides it in its own logs and results. In your own code, do not print "
    "responses that contain credentials."
)


class LogMask:
    """The secrets of this process that Airflow masks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._masked: set[str] = set()
        self._room = MOST_MASKED
        self._warned = False

    def hide(self, credentials: Iterable[str]) -> None:
        """Mask the connection's own credentials. Do not call it on an event loop."""
        with self._lock:
            self._mask(self._new(credentials))

    async def hide_on_loop(self, credentials: Iterable[str]) -> None:
        """`hide` for an event loop."""
        if new := self._new(credentials):
            await asyncio.to_thread(self.hide, new)

    def learn(self, secrets: Iterable[str]) -> None:
        """Mask the secrets in a call or in its response, while there is room. If this fails, a
        warning says so, and the response is still returned. Do not call it on an event loop."""
        try:
            with self._lock:
                self._learn(self._new(secrets))
        except Exception:
            log.warning(_NOT_MASKED, exc_info=True)

    async def learn_on_loop(self, secrets: Iterable[str]) -> None:
        """`learn` for an event loop."""
        await asyncio.to_thread(self.learn, secrets)

    def _learn(self, new: list[str]) -> None:
        if len(new) > self._room and not self._warned:
            self._warned = True
            log.warning(
                "The service returned more than %d credentials, and Airflow masks only the first "
                "%d of them in its logs. In your own code, do not print responses that contain "
                "credentials.",
                MOST_MASKED,
                MOST_MASKED,
            )
        masked = new[: self._room]
        self._mask(masked)
        self._room -= len(masked)

    def _new(self, secrets: Iterable[str]) -> list[str]:
        """Return the secrets that this process has not masked yet."""
        return [secret for secret in dict.fromkeys(secrets) if secret not in self._masked]

    def _mask(self, secrets: list[str]) -> None:
        _airflow.mask_secrets(secrets)
        self._masked.update(secrets)


LOG_MASK = LogMask()
