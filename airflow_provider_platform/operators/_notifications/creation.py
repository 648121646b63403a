"""`PlatformCreateNotificationOperator`: create a schedule once, or return the existing schedule."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from airflow_provider_platform.client.errors import (
    PlatformConflictError,
    PlatformOutcomeUnknownError,
)
from airflow_provider_platform.client.operations.rules import exactly_one, required
from airflow_provider_platform.links import DashboardLink, Links, NotificationLink
from airflow_provider_platform.operators._base import arguments
from airflow_provider_platform.operators._base.operator import DeploymentOperator
from airflow_provider_platform.operators._notifications.schedule import (
    NotificationScheduleOperator,
    describe,
)
from airflow_provider_platform.operators._submission.single_call import SingleCallOperator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_platform.client.config import PlatformConfig
    from airflow_provider_platform.client.management.notifications.existing import Matches
    from airflow_provider_platform.client.management.notifications.notifications import (
        CreateNotificationInput,
        Notification,
    )
    from airflow_provider_platform.client.operations.rules import Rule
    from airflow_provider_platform.hooks.platform import PlatformHook
    from airflow_provider_platform.operators._base.operator import Checks

IfExists = Literal["skip", "update", "fail"]


class PlatformCreateNotificationOperator(
    DeploymentOperator, NotificationScheduleOperator, SingleCallOperator
):
    """Create a schedule that sends a dashboard. The new schedule has no recipients.

    Use it to keep schedules in code: however often the DAG runs, there is one schedule.

    The service would create a second equal schedule, so the operator first looks for an existing
    one with the same dashboard, times, time zone, format, filters, time grains and member
    switchers. Schedules that differ in one of these are different schedules. Returns the
    notification as the service describes it.

    :param dashboard_id: the dashboard to send; or
    :param dashboard_public_id: the public id of the dashboard
    :param if_exists: what to do if such a schedule exists: `skip` returns it (if there are several,
        the newest one that is switched on), `update` changes its `notification_enabled` and
        `notification_ai_summary` (the task fails if several match), `fail` fails. The log or the
        error says if the schedule is switched off
    """

    operator_extra_links = Links(NotificationLink, DashboardLink)
    linked_result: ClassVar[dict[str, str]] = {
        "notification_id": "id",
        "dashboard_id": "dashboardId",
    }

    checks: ClassVar[Checks] = {
        "dashboard_id": arguments.optional_id,
        "dashboard_public_id": arguments.optional_text,
        "if_exists": partial(arguments.choice, choices=("skip", "update", "fail")),
    }
    rules: ClassVar[Sequence[Rule]] = (
        (("schedule_type",), required),
        (("dashboard_id", "dashboard_public_id"), exactly_one),
    )

    def __init__(
        self,
        *,
        schedule_type: str,
        dashboard_id: int | str | None = None,
        dashboard_public_id: str | None = None,
        if_exists: IfExists = "skip",
        **kwargs: Any,
    ) -> None:
        super().__init__(schedule_type=schedule_type, **kwargs)
        self.dashboard_id: Any = dashboard_id
        self.dashboard_public_id = dashboard_public_id
        self.if_exists = if_exists
        self._there: Matches | None = None
        self.validate_known_arguments()

    def key_of(self, config: PlatformConfig) -> str:
        return self.fingerprint(config, "notification", self._body().to_json())

    def prepare(self, hook: PlatformHook) -> dict[str, Any]:
        """Return the deployment and the ids of the schedules that exist before the call."""
        from airflow_provider_platform.client.management.notifications.existing import find_matching

        deployment_id = hook.resolve_deployment_id(self.deployment_id)
        self._there = there = hook.run(find_matching(deployment_id, self._body()))
        known = [found.id for found in (*there.same, *there.unclear)]
        return {"deployment_id": deployment_id, "known": known}

    def call(self, hook: PlatformHook) -> Any:
        if self._there is not None and self._there.same:
            return self._settle_existing(hook, self._there.same).to_json()
        self._refuse_unclear()
        dashboard = arguments.given(
            dashboard_id=self.dashboard_id, dashboard_public_id=self.dashboard_public_id
        )
        created = hook.create_notification(
            deployment_id=self.deployment_id, **dashboard, **self.schedule()
        )
        self.log.info("Created notification %s: %s", created.id, describe(created))
        self._warn_of_differences(created)
        return created.to_json()

    def find(self, hook: PlatformHook, ids: dict[str, Any]) -> Any | None:
        """Return a matching schedule that did not exist before the call whose response was lost, or
        None. Raises PlatformOutcomeUnknownError."""
        from airflow_provider_platform.client.management.notifications.existing import find_created

        created = hook.run(find_created(ids["deployment_id"], self._body(), known=ids["known"]))
        if len(created) > 1 and self.if_exists != "skip":
            numbers = ", ".join(str(found.id) for found in created)
            raise PlatformOutcomeUnknownError(
                "The connection broke before the service confirmed the new notification, and "
                f"several new notifications could belong to this task ({numbers}). Keep one of "
                "them and delete the others, then mark this task as successful."
            )
        if not created:
            return None
        self.log.info(
            "Notification %s was created, although the connection broke before the "
            "service confirmed it.",
            created[0].id,
        )
        return created[0].to_json()

    def remember(self, result: Any) -> dict[str, Any]:
        return {"id": result["id"]}

    def take(self, hook: PlatformHook, ids: dict[str, Any]) -> Any:
        return hook.get_notification(ids["id"], deployment_id=self.deployment_id).to_json()

    def _settle_existing(self, hook: PlatformHook, there: list[Notification]) -> Notification:
        """Return or change the existing schedules, as `if_exists` says. Raises
        PlatformConflictError."""
        names = ", ".join(_with_silence(found) for found in there)
        sending = next((found for found in there if found.silence is None), there[0])
        if self.if_exists == "fail":
            raise PlatformConflictError(
                f"Nothing was created: this dashboard has notification {names} already, with the "
                "same times, time zone, format, filters, time grains and member switchers "
                "(if_exists='fail')."
            )
        if self.if_exists == "update" and len(there) > 1:
            raise PlatformConflictError(
                f"Nothing was changed: several notifications match ({names}). Delete all but one "
                "of them, or update one of them by its id."
            )
        if len(there) > 1:
            self.log.warning(
                "Several notifications match (%s); returning notification %s.", names, sending.id
            )
        if self.if_exists == "skip":
            self.log.info("Nothing to create: notification %s already exists.", sending.id)
        else:
            self.log.info("Notification %s already exists; updating it.", sending.id)
            sending = hook.update_notification(
                sending.id, deployment_id=self.deployment_id, **self.schedule()
            )
        is_wanted = self.notification_enabled is False and sending.is_enabled is not False
        if sending.silence is not None and not is_wanted:
            self.log.warning(
                "Notification %s is not sent to anybody: %s. Switch the notification on with "
                "PlatformUpdateNotificationOperator, or delete it.",
                sending.id,
                sending.silence,
            )
        return sending

    def _refuse_unclear(self) -> None:
        """Raise PlatformConflictError if an existing schedule may be the wanted one. A new one
        could be a second copy, and the existing one could send people the wrong data."""
        unclear = self._there.unclear if self._there is not None else []
        if unclear:
            first = unclear[0]
            settings = " and ".join(self._body().unclear_settings(first))
            raise PlatformConflictError(
                f"Nothing was created: notification {_with_silence(first)} of this dashboard may "
                "be the same. It has the same times, time zone and format. The tenant does not "
                f"report its {settings}, so the task cannot compare these settings. Look at the "
                "notification in the platform. If you want to use it, update it by its id "
                "(PlatformUpdateNotificationOperator). If nobody needs it, delete it and run this "
                "task again."
            )

    def _warn_of_differences(self, created: Notification) -> None:
        """Log a warning if the service stored other settings than the task sent (the next run
        creates another notification), or does not report them (the next run fails: see
        `_refuse_unclear`)."""
        body = self._body()
        if differing := body.differing_settings(created):
            self.log.warning(
                "The service stored other values than the task sent for the %s of notification "
                "%s. The tenant's release may not support these settings. Correct the notification "
                "or this task. Otherwise the next run does not recognize the notification and "
                "creates another one.",
                " and ".join(differing),
                created.id,
            )
        elif unclear := body.unclear_settings(created):
            self.log.warning(
                "The service does not report the %s of notification %s in a form that the task can "
                "read. The tenant's release may not support these settings. Check the notification "
                "in the platform. The next run cannot compare the notification with this task, so "
                "it creates nothing and fails.",
                " and ".join(unclear),
                created.id,
            )

    def _body(self) -> CreateNotificationInput:
        from airflow_provider_platform.client.management.notifications.notifications import (
            CreateNotificationInput,
        )

        return CreateNotificationInput.build(
            dashboard_id=self.dashboard_id,
            dashboard_public_id=self.dashboard_public_id,
            **self.schedule(),
        )


def _with_silence(notification: Notification) -> str:
    """Return a schedule's id, with the reason if it sends nothing."""
    silence = notification.silence
    return f"{notification.id} ({silence})" if silence else str(notification.id)
