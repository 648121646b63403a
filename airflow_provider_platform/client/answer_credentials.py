"""Credentials in answers that no model describes: found by the names of their fields."""

from __future__ import annotations

from typing import Any

from pydantic import SecretStr

from airflow_provider_platform.client.models import hide_credentials


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
