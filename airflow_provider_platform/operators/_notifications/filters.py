"""The arguments that select scheduled notifications, and which of them exclude each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_platform.client.operations.rules import at_most_one, together
from airflow_provider_platform.operators._base import arguments
from airflow_provider_platform.operators._base.operator import DeploymentOperator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_platform.client.operations.rules import Rule
    from airflow_provider_platform.operators._base.operator import Check, Checks

FILTERS: dict[str, Check] = {
    "dashboard_id": arguments.optional_id,
    "dashboard_public_id": arguments.optional_text,
    "recipient_user_id": arguments.optional_id,
    "recipient_email": arguments.optional_text,
    "recipient_embed_tenant_name": arguments.optional_text,
    "recipient_external_id": arguments.optional_text,
}


class NotificationFilterOperator(DeploymentOperator):
    """Base of the operators on schedules that filters select."""

    checks: ClassVar[Checks] = FILTERS
    rules: ClassVar[Sequence[Rule]] = (
        (("dashboard_id", "dashboard_public_id"), at_most_one),
        (
            ("recipient_user_id", "recipient_email", "recipient_embed_tenant_name"),
            at_most_one,
        ),
        (("recipient_embed_tenant_name", "recipient_external_id"), together),
    )

    def __init__(
        self,
        *,
        dashboard_id: int | str | None = None,
        dashboard_public_id: str | None = None,
        recipient_user_id: int | str | None = None,
        recipient_email: str | None = None,
        recipient_embed_tenant_name: str | None = None,
        recipient_external_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.dashboard_id = dashboard_id
        self.dashboard_public_id = dashboard_public_id
        self.recipient_user_id = recipient_user_id
        self.recipient_email = recipient_email
        self.recipient_embed_tenant_name = recipient_embed_tenant_name
        self.recipient_external_id = recipient_external_id

    def filters(self) -> dict[str, Any]:
        """Return the given filters, by name."""
        return {name: getattr(self, name) for name in FILTERS}
