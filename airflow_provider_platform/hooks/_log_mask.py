"""How many secrets Airflow masks in its own logs, and when.

Which values are secrets is decided elsewhere: `PlatformConfig.secrets` for those of a connection,
`client.operations.secret_names` for those of requests and responses.

This package redacts what it logs and stores (`client.known_secrets`). Airflow's mask is for what a
DAG author prints, for example a token that a method of the hook returned. For each call, Airflow
compiles one pattern of all secrets again, in the task and once more in its supervisor or on the
triggerer's loop. So a process masks each secret once and as it is, all secrets of one response
together, at most `MOST_MASKED` of responses, and never on an event loop.
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
        """Mask the secrets in a call or in its response, while there is room. Do not call it on an
        event loop."""
        with self._lock:
            new = self._new(secrets)
            if len(new) > self._room and not self._warned:
                self._warned = True
                log.warning(
                    "The service returned more than %d credentials, and Airflow masks only the "
                    "first %d of them in its logs. In your own code, do not print responses that "
                    "contain credentials.",
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
