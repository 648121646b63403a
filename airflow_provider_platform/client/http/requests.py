"""What a request is made of: the headers that all have in common, query parameters, a JSON body."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from airflow_provider_platform.client.errors import PlatformInputError, RequestName
from airflow_provider_platform.client.http.connection_errors import reason
from airflow_provider_platform.client.http.content_coding import ACCEPTED

HEADERS = {
    "Accept-Encoding": ACCEPTED,
    "Connection": "keep-alive",
    "User-Agent": "airflow-provider-platform",
}


def json_body(name: RequestName, value: Any) -> bytes:
    """A request's body, empty for None. Raises PlatformInputError for what JSON cannot carry."""
    if value is None:
        return b""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise PlatformInputError(
            f"{name.action}: nothing was sent, because the request body cannot be written as JSON "
            f"({reason(error)}).",
            where=name.where,
        ) from None


def query_pairs(params: Mapping[str, Any] | None) -> list[tuple[str, Any]] | None:
    """Query parameters as pairs: lists repeat their name, None is absent, booleans are lower."""
    if not params:
        return None
    return [
        (name, str(one).lower() if isinstance(one, bool) else str(one))
        for name, value in params.items()
        for one in (value if isinstance(value, list | tuple) else [value])
        if one is not None
    ]
