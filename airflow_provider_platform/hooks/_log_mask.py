"""How many secrets Airflow masks in its own logs, and when.

Which values are secrets is decided elsewhere: `PlatformConfig.secrets` for those of a connection,
`client.operations.secret_names` for those of requests and responses.

This package redacts what it logs and stores (`client.known_secrets`). Airflow's mask is for what a
DAG author prints, for example a token that a method of the hook returned. For each new secret,
Airflow compiles one pattern of all secrets again, in the task and once more in its supervisor or on
the triggerer's loop. So the time grows with the square of their number: 400 secrets take a minute.
Hence a process masks each secret once, all secrets of one response together, and never on an event
loop. The first few secrets of responses are masked in every form in which a log may show them. The
others are masked as they are. Beyond `MOST_MASKED` no secret is masked, and one warning says so.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from typing import TYPE_CHECKING

from airflow_provider_platform import _airflow
from airflow_provider_platform.client.known_secrets import maskable

if TYPE_CHECKING:
    from collections.abc import Iterable

log = logging.getLogger(__name__)

MOST_MASKED = 100
"""Texts of answers that Airflow is given in one process: it compiles these in half a second."""
ENCODED = 4
"""How many secrets of answers are masked in every form."""


class LogMask:
    """The secrets of this process that Airflow masks."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._masked: set[str] = set()
        self._learned = 0
        self._texts_of_answers = 0
        self._warned = False

    def hide(self, credentials: Iterable[str]) -> None:
        """Mask the connection's own credentials in every form. Do not call it on an event loop."""
        with self._lock:
            self._mask(self._new(maskable(credentials)))

    async def hide_on_loop(self, credentials: Iterable[str]) -> None:
        """`hide` for an event loop."""
        known = list(credentials)
        if not self._masked.issuperset(known):
            await asyncio.to_thread(self.hide, known)

    def learn(self, secrets: Iterable[str]) -> None:
        """Mask the secrets in a call or in its response. Do not call it on an event loop."""
        with self._lock:
            self._mask(self._affordable(list(secrets)))

    async def learn_on_loop(self, secrets: Iterable[str]) -> None:
        """`learn` for an event loop."""
        await asyncio.to_thread(self.learn, list(secrets))

    def _affordable(self, secrets: list[str]) -> list[str]:
        """Return the strings to mask for these secrets, at most as many as there is room for."""
        secrets = self._new(secrets)  # each client of a process learns those of a connection again
        encoded = max(0, ENCODED - self._learned)
        self._learned += len(secrets)
        texts = self._new([*maskable(secrets[:encoded]), *secrets[encoded:]])
        room = MOST_MASKED - self._texts_of_answers
        self._texts_of_answers += min(room, len(texts))
        if len(texts) > room and not self._warned:
            self._warned = True
            log.warning(
                "The service returned more than %d credentials, and Airflow masks only the first "
                "%d of them in its logs. This package still hides all of them in its own logs and "
                "results. In your own code, do not print responses that contain credentials.",
                MOST_MASKED,
                MOST_MASKED,
            )
        return texts[:room]

    def _new(self, texts: list[str]) -> list[str]:
        """Return the strings that this process has not masked yet."""
        return [text for text in texts if text not in self._masked]

    def _mask(self, texts: list[str]) -> None:
        _airflow.mask_secrets(texts)
        self._masked.update(texts)


LOG_MASK = LogMask()
