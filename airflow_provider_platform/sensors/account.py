"""`PlatformUserOAuthTokenSensor`: wait until a user's token for an integration has a status."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_platform.client import argument_rules as arguments
from airflow_provider_platform.sensors._base import PlatformSensor

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from airflow_provider_platform.client.argument_rules import Rule
    from airflow_provider_platform.operators._base import Checks


@arguments.or_none
def _statuses(name: str, value: Any) -> list[str]:
    """Return one status or a list of statuses; a list may be a JSON string."""
    if isinstance(value, str) and not value.lstrip().startswith("["):
        return [arguments.text(name, value)]
    listed = arguments.sequence(name, value) or [None]
    return [arguments.text(name, status) for status in listed]


def _waits_for_something(target_statuses: list[str] | None, expires_within: float | None) -> None:
    """A rule: one of them says what ends the wait."""
    if target_statuses is None and expires_within is None:
        raise ValueError("give target_statuses, expires_within, or both")


class PlatformUserOAuthTokenSensor(PlatformSensor):
    """Wait until a user's token for an OAuth integration has one of the wanted statuses, expires
    soon, or both.

    Use it before work that needs a user's consent or a fresh token of another system; or, with
    `expires_within`, before a task that asks the user to consent again.

    The service defines the statuses as free text and documents none of them: read one with
    `PlatformApiOperator(operation="listUserOAuthTokens")`. Upper and lower case are equal. Returns
    the token's description, which contains no secret.

    :param integration_id: the OAuth integration
    :param target_statuses: the statuses that end the wait
    :param user_id: the user who has the token (default: any user)
    :param expires_within: seconds (or a timedelta): wait until the refresh token expires in this
        time, or has expired; if the service does not report when it expires, the access
        token counts instead. With `target_statuses`, the token must have such a status too
    """

    condition_kind = "user_oauth_token"
    checks: ClassVar[Checks] = {
        "integration_id": arguments.identifier,
        "target_statuses": _statuses,
        "user_id": arguments.optional_id,
        "expires_within": arguments.or_none(arguments.seconds),
    }
    rules: ClassVar[Sequence[Rule]] = (
        (("target_statuses", "expires_within"), _waits_for_something),
    )

    def __init__(
        self,
        *,
        integration_id: int | str,
        target_statuses: Sequence[str] | str | None = None,
        user_id: int | str | None = None,
        expires_within: float | timedelta | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.integration_id = integration_id
        self.target_statuses = target_statuses
        self.user_id = user_id
        self.expires_within = expires_within
        self.validate_known_arguments()
