"""The parts of a request: common headers, query parameters, a JSON body."""

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
    """Return a request's body; empty for None. Raises PlatformInputError for values that JSON does
    not have."""
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
    """Return query parameters as pairs: a list repeats its name, None is left out, booleans are in
    lower case."""
    if not params:
        return None
    return [
        (name, str(item).lower() if isinstance(item, bool) else str(item))
        for name, value in params.items()
        for item in (value if isinstance(value, list | tuple) else [value])
        if item is not None
    ]
