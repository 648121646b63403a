"""What the response to an abort request proves: only 204 means that the chat run was stopped."""

from __future__ import annotations

from collections.abc import Mapping

from airflow_provider_platform.client.errors import PlatformProtocolError
from airflow_provider_platform.client.http.api_errors import CHAT_ABORT, chat_error, rpc_error
from airflow_provider_platform.client.http.responses import json_value, refuse_redirect


def read_abort(status: int, headers: Mapping[str, str], body: bytes, *, now: float) -> None:
    """Raise PlatformError unless the response confirms the stop."""
    name = CHAT_ABORT
    refuse_redirect(name, status, headers)
    if status == 204:
        return
    if status >= 400:
        raise chat_error(name, status, headers, body, now=now, aborts=True)
    value = json_value(name, headers, body) if body.strip() else None
    if isinstance(value, dict) and value.get("error"):
        raise rpc_error(value["error"], name.where)
    raise PlatformProtocolError(
        f"{name.action}: the run may continue, because the service answered {status} and only 204 "
        "confirms the stop.",
        where=name.where,
    )
