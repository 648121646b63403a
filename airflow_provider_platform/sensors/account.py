"""`PlatformUserOAuthTokenSensor`: wait until a user's token for an integration has a status."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_platform.operators import _arguments as arguments
from airflow_provider_platform.sensors._base import PlatformSensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_platform.operators._base import Checks


def _statuses(name: str, value: Any) -> list[str]:
    """Return one status or a list of statuses; a list may be a JSON string."""
    if isinstance(value, str) and not value.lstrip().startswith("["):
        return [arguments.text(name, value)]
    listed = arguments.sequence(name, value) or [None]
    return [arguments.text(name, status) for status in listed]


class PlatformUserOAuthTokenSensor(PlatformSensor):
    """Wait until a user's token for an OAuth integration has one of the wanted statuses.

    Use it before work that needs a user's consent or a fresh token of another system.

    The service defines the statuses as free text; upper and lower case are equal. Returns the
    token's description, which holds no secret.

    :param integration_id: the OAuth integration
    :param target_statuses: the statuses that end the wait
    :param user_id: the user whose token is meant (default: any user)
    """

    condition_kind = "user_oauth_token"
    checks: ClassVar[Checks] = {
        "integration_id": arguments.identifier,
        "target_statuses": _statuses,
        "user_id": arguments.optional_id,
    }

    def __init__(
        self,
        *,
        integration_id: int | str,
        target_statuses: Sequence[str] | str,
        user_id: int | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.integration_id = integration_id
        self.target_statuses = target_statuses
        self.user_id = user_id
        self.validate_known_arguments()
