"""Secrets among what is sent and received: by their type, and by the names of their fields."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, SecretStr

from airflow_provider_platform.client.operations.models import hide_credentials
from airflow_provider_platform.client.redaction import SHORTEST_SECRET

_CREDENTIAL_WORD = re.compile(
    rb"secret|pass|pwd|token|jwt|session|key|credential|auth|connection|dsn|cookie|bearer|\\u",
    re.IGNORECASE,
)
"""Stands in every body that holds a credential; an escape may hide one of these words."""


def secrets_in(value: Any) -> Iterator[str]:
    """Every secret in a model or in JSON: what is a SecretStr, and texts under names like
    `clientSecret` that are long enough for one."""
    return (text for text in _walk(value) if text.strip("* "))


def may_hold_secrets(body: bytes) -> bool:
    """Whether a body is worth searching; most are not."""
    return _CREDENTIAL_WORD.search(body) is not None


def _walk(value: Any) -> Iterator[str]:
    if isinstance(value, SecretStr):
        yield value.get_secret_value()
    elif isinstance(value, BaseModel):
        # The fields of a model that are secrets say so by their type.
        for item in (*vars(value).values(), *(value.model_extra or {}).values()):
            yield from _walk(item)
    elif isinstance(value, dict):
        yield from (
            text for text in _hidden(hide_credentials(value)) if len(text) >= SHORTEST_SECRET
        )
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _walk(item)


def _hidden(value: Any) -> Iterator[str]:
    """The texts in JSON that are a SecretStr, and those of models in it."""
    if isinstance(value, dict):
        for item in value.values():
            yield from _hidden(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _hidden(item)
    else:
        yield from _walk(value)


def credentials_in(answer: Any) -> dict[str, str]:
    """The credentials in plain JSON, by where they stand, as `data.0.token`."""
    found: dict[str, str] = {}
    _collect(hide_credentials(answer), "", found)
    return found


def _collect(value: Any, place: str, found: dict[str, str]) -> None:
    if isinstance(value, SecretStr):
        text = value.get_secret_value()
        if text.strip("* "):
            found[place] = text
    elif isinstance(value, dict):
        for name, item in value.items():
            _collect(item, f"{place}.{name}" if place else str(name), found)
    elif isinstance(value, list):
        for position, item in enumerate(value):
            _collect(item, f"{place}.{position}" if place else str(position), found)
