"""The declared content type of a request's body."""

from __future__ import annotations

from collections.abc import Mapping


def is_json(headers: Mapping[str, str]) -> bool:
    """Return whether the ``Content-Type``, without its parameters, is ``application/json``."""
    media_type = headers.get("content-type", "").partition(";")[0]
    return media_type.strip().lower() == "application/json"
