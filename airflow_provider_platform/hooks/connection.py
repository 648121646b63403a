"""An Airflow connection as checked configuration.

The connection form, a URI, a JSON environment variable and the command line store the same values
in different places: an address may be complete in `host`, or have its scheme or path in `schema`,
and the extras of a URI are strings. This module reads the same configuration from all of them.
"""

from __future__ import annotations

import logging
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from tenacity import retry_if_exception, stop_after_attempt, wait_exponential, wait_random

from airflow_provider_platform.client.argument_rules import read_json_string
from airflow_provider_platform.client.config import PlatformConfig
from airflow_provider_platform.client.connection_fields import EXTRA_NAMES, FIELDS
from airflow_provider_platform.client.errors import (
    PlatformConfigError,
    PlatformError,
    PlatformTransportError,
)
from airflow_provider_platform.client.redaction import quote_service
from airflow_provider_platform.hooks.connection_type import CONNECTION_TYPE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenacity import RetryCallState


log = logging.getLogger(__name__)

_SCHEMES = ("http", "https")
READ_ATTEMPTS = 5
FIRST_PAUSE = 0.5
"""Seconds; the pauses double, so that all attempts take about eight."""


class AirflowConnection(Protocol):
    """The fields of a connection that this module reads. Airflow has two classes of that name."""

    @property
    def host(self) -> str | None: ...
    @property
    def schema(self) -> str | None: ...
    @property
    def login(self) -> str | None: ...
    @property
    def password(self) -> str | None: ...
    @property
    def port(self) -> int | None: ...
    @property
    def extra(self) -> str | None: ...


def config_from_connection(
    connection: AirflowConnection, conn_id: str | None = None
) -> PlatformConfig:
    """Return the checked configuration. Raises PlatformConfigError, which names the connection, the
    field and the rule.

    Unknown extras have no effect. A warning in the log names them.
    """
    try:
        config = _config_from_connection(connection)
    except PlatformConfigError as error:
        place = "" if conn_id is None else f"connection {conn_id!r}"
        raise PlatformConfigError(
            error.reason, where=error.where_also(place), field=error.field
        ) from None
    return config if conn_id is None else config.of_connection(conn_id)


def _config_from_connection(connection: AirflowConnection) -> PlatformConfig:
    _check_type(connection)
    extras = read_extras(connection)
    for warning in unknown_settings(extras):
        log.warning("%s", warning)
    _check_login(connection)
    return PlatformConfig.build(
        host=_address(connection.host, connection.schema),
        port=connection.port,
        management_token=connection.password,
        **{name: value for name, value in extras.items() if name in EXTRA_NAMES},
    )


def read_extras(connection: AirflowConnection) -> dict[str, Any]:
    """Return the extras as they are stored. Raises PlatformConfigError if they are not a JSON
    object.

    Airflow's own `extra_dejson` also masks secrets, which cannot be done on an event loop.
    """
    text = (connection.extra or "").strip()
    if not text:
        return {}
    try:
        extras = read_json_string(text)
    except ValueError:
        extras = None
    if not isinstance(extras, dict):
        raise PlatformConfigError(
            'extra must be a JSON object, as in {"chat_url": "https://..."}.', field="extra"
        )
    return extras


def unknown_settings(extras: Mapping[str, Any]) -> list[str]:
    """Return one did-you-mean warning for each unknown extra, without values."""
    names = [name for name, value in extras.items() if value is not None and value != ""]
    return [
        f"The connection's extra {quote_service(name)!r} is not a setting of this provider and has "
        f"no effect{_suggestion(name)}."
        for name in names
        if name not in EXTRA_NAMES
    ]


def _suggestion(name: str) -> str:
    standard = _STANDARD_NAMES.get(name.strip().lower())
    if standard:
        return f"; enter its value in the connection's {standard}"
    plain = name.strip().lower().removeprefix("extra__platform__").replace("-", "_")
    near = get_close_matches(plain, sorted(EXTRA_NAMES), n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else ""


_STANDARD_NAMES = {alias: field.place for field in FIELDS for alias in field.aliases}
"""Standard fields, by the names that people give them in `extra`."""


def _check_type(connection: AirflowConnection) -> None:
    """Refuse a connection of another type, so that no secrets of another service are sent."""
    connection_type = getattr(connection, "conn_type", None)
    if connection_type not in (None, "", CONNECTION_TYPE):
        raise PlatformConfigError(
            f"The connection type is {quote_service(connection_type)!r}, but must be "
            f"{CONNECTION_TYPE!r} "
            "(Analytics Platform). Check platform_conn_id, or change the connection's type "
            "(conn_type).",
            field="conn_type",
        )


def _check_login(connection: AirflowConnection) -> None:
    """Refuse a token in the place of the user name: the usual mistake in a URI."""
    if connection.login and not connection.password:
        raise PlatformConfigError(
            "Management token (password) is missing, but login is set. The provider does not use "
            "login. Move the token from login to password. In a URI, write a colon before the "
            "token: platform://:TOKEN@host.",
            field="password",
        )


def _address(host: str | None, schema: str | None) -> str | None:
    """Return the management address. In a URI, `schema` can be its scheme (`https`) or its path
    (`api`)."""
    host, schema = (host or "").strip(), (schema or "").strip()
    if not schema:
        return host or None
    if not host:
        raise PlatformConfigError(
            "schema is set, but Management API address (host) is missing. Enter the whole "
            "address in host, for example https://acme.example.com/api.",
            field="host",
        )
    if schema.lower() not in _SCHEMES:
        return f"{host.rstrip('/')}/{schema.strip('/')}"
    scheme, separator, _ = host.partition("://")
    if not separator:
        return f"{schema.lower()}://{host}"
    if scheme.lower() != schema.lower():
        raise PlatformConfigError(
            f"schema is {schema.lower()}, but Management API address (host) begins with another "
            "protocol. Leave schema empty.",
            field="schema",
        )
    return host


def connection_retry_policy(conn_id: str) -> dict[str, Any]:
    """Return arguments for tenacity's `Retrying` and `AsyncRetrying`, for a connection that the
    task has read before: in a trigger, or after a refused credential.

    If a look-up fails on the way (the API server restarts, the database is locked), Airflow reports
    a connection that is not defined. If the task has read the connection a moment ago, a failed
    look-up is more likely than a deleted connection. So the look-up is repeated before it ends a
    wait of hours.

    A connection that can be read and is bad (PlatformConfigError), or that the task must not read
    (PermissionError), is not read again. PlatformTransportError is raised after the last attempt.
    """

    def give_up(state: RetryCallState) -> NoReturn:
        cause = state.outcome.exception() if state.outcome else None
        raise PlatformTransportError(
            f"The Airflow connection {conn_id!r} can no longer be read ({type(cause).__name__}: "
            f"{quote_service(cause)}). Check that it still exists, and that Airflow's API server "
            "and database are running.",
            processed=False,
        ) from cause

    return {
        "retry": retry_if_exception(_may_pass),
        "wait": wait_exponential(FIRST_PAUSE) + wait_random(0, FIRST_PAUSE),
        "stop": stop_after_attempt(READ_ATTEMPTS),
        "retry_error_callback": give_up,
    }


def _may_pass(error: BaseException) -> bool:
    return isinstance(error, Exception) and not isinstance(error, PlatformError | PermissionError)
