"""What the body of a request says it is."""

from __future__ import annotations

from collections.abc import Mapping


def is_json(headers: Mapping[str, str]) -> bool:
    """Whether the ``Content-Type``, whatever its parameters, is ``application/json``."""
    media_type = headers.get("content-type", "").partition(";")[0]
    return media_type.strip().lower() == "application/json"
