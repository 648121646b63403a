"""`PlatformNotificationSensor`: wait until a scheduled notification exists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_platform.client import argument_rules as arguments
from airflow_provider_platform.links import NotificationLink, all_links
from airflow_provider_platform.operators.notifications import (
    FILTERS,
    NotificationFilterOperator,
)
from airflow_provider_platform.sensors._base import PlatformSensor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_platform.client.argument_rules import Rule
    from airflow_provider_platform.operators._base import Checks


def _refuse_filters_with_id(notification_id: int | None, **filters: Any) -> None:
    """A rule: `notification_id` and filters exclude each other."""
    names = [name for name, value in filters.items() if value is not None]
    if notification_id is not None and names:
        raise ValueError(
            f"notification_id already identifies the notification, so {', '.join(names)} cannot be "
            "given too"
        )


class PlatformNotificationSensor(NotificationFilterOperator, PlatformSensor):
    """Wait until a schedule exists and, with `is_enabled`, is switched on or off.

    Use it to continue only after an administrator has created or switched on a schedule that your
    DAG needs.

    The sensor finds the schedule by its id or by filters. Without both, any schedule ends the wait.
    Returns the notification as the service describes it. Needs an administrator's token.

    :param notification_id: the schedule's id. Without it, the dashboard and the recipient find the
        schedule
    :param dashboard_id: the id of the dashboard that is sent; or `dashboard_public_id` or
        `dashboard`
    :param dashboard_public_id: the public id of the dashboard
    :param dashboard: the title of the published dashboard, looked up at each poll; if no dashboard
        or several have it, the task fails
    :param recipient_user_id: a console user who is a recipient, by id
    :param recipient_email: a console user who is a recipient, by e-mail address
    :param recipient_embed_tenant_name: the tenant of an embed user who is a recipient
    :param recipient_external_id: the id of that user in the tenant
    :param is_enabled: wait until the schedule is on (True) or off (False)
    """

    operator_extra_links = all_links(NotificationLink)
    linked_result: ClassVar[dict[str, str]] = {"notification_id": "id"}

    condition_kind = "notification"
    checks: ClassVar[Checks] = {
        "notification_id": arguments.optional_id,
        "is_enabled": arguments.optional_boolean,
    }
    rules: ClassVar[Sequence[Rule]] = ((("notification_id", *FILTERS), _refuse_filters_with_id),)

    def __init__(
        self,
        *,
        notification_id: int | str | None = None,
        is_enabled: bool | str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.notification_id = notification_id
        self.is_enabled = is_enabled
        self.validate_known_arguments()
