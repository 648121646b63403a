"""The conditions that sensors wait for: one poll of each.

A condition has a kind and a subject, both plain JSON, so that a wait can move from one process to
another. A poll returns plain JSON once the condition holds, and None until then. While it does not
hold, the poll notifies of `NotYet`, whose text begins with the reason and ends with ids.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_provider_platform.client.errors import (
    PlatformError,
    PlatformNotFoundError,
)
from airflow_provider_platform.client.models import ResponseModel, Timestamp
from airflow_provider_platform.client.operation import Operation, typed
from airflow_provider_platform.client.pages import Page, PageWalk
from airflow_provider_platform.client.polling import NotYet
from airflow_provider_platform.client.redaction import quote_service
from airflow_provider_platform.resources import dbt_sync as dbt_run
from airflow_provider_platform.resources.builds import (
    Build,
    BuildWanted,
)
from airflow_provider_platform.resources.chat.thread import thread_is_streaming
from airflow_provider_platform.resources.deployments import (
    get_deployment_settings,
)
from airflow_provider_platform.resources.missing_operations import raise_if_missing
from airflow_provider_platform.resources.names import choose_named, find_agent_id, find_id
from airflow_provider_platform.resources.notifications import (
    Notification,
    get_notification,
    list_notifications,
)
from airflow_provider_platform.resources.reports import (
    Report,
    get_report,
    list_reports,
)
from airflow_provider_platform.resources.sql.query import poll_awake

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from airflow_provider_platform.client.api import Api

T = TypeVar("T")

Seen = dict[str, Any] | None
"""What a poll returns: plain JSON, or None while the condition does not hold."""


@dataclass(frozen=True)
class Condition:
    """Something to wait for: `kind` is a key of `KINDS`, `subject` the arguments of its poll."""

    kind: str
    subject: dict[str, Any]

    async def poll(self, api: Api) -> Seen:
        """Poll once. Notifies of what the service reported; raises PlatformError."""
        return await KINDS[self.kind](api, **self.subject)

    @property
    def may_be_late(self) -> bool:
        """Whether the service may not know the subject for a moment after its start."""
        return self.kind == "dbt_sync"


class UserOAuthToken(ResponseModel):
    """A user's token for an integration. `status` is free text."""

    user_id: int
    integration_id: int
    status: str
    access_token_expires_at: Timestamp | None = None
    refresh_token_expires_at: Timestamp | None = None


list_user_oauth_tokens = typed("listUserOAuthTokens", Page[UserOAuthToken])


def is_fresh(report: Report, updated_after: datetime | None) -> bool:
    """Whether the report was updated after that time; always true without a time. Raises
    PlatformProtocolError if the service's time cannot be read."""
    if updated_after is None:
        return True
    updated_at = report.decided("updated_at")
    return updated_at is not None and updated_at > updated_after


def is_refreshed(report: Report, refreshed_after: datetime | None) -> bool:
    """Whether a placement of the report was refreshed after that time; always true without a time.
    Raises PlatformProtocolError if the service's placements cannot be read."""
    if refreshed_after is None:
        return True
    placements = report.decided("external_workbook_placements") or ()
    times = [placement.decided("refreshed_at") for placement in placements]
    return any(time is not None and time > refreshed_after for time in times)


def is_switched(notification: Notification, is_enabled: bool | None) -> bool:
    """Whether the schedule is enabled or disabled as wanted; always true if `is_enabled` is None.
    Raises PlatformProtocolError if the response's switch cannot be read."""
    return is_enabled is None or notification.decided("is_enabled") == is_enabled


def has_status(token: UserOAuthToken, statuses: Sequence[str]) -> bool:
    """Whether the token's status is one of these, in upper or lower case."""
    return token.status.strip().casefold() in {status.strip().casefold() for status in statuses}


def expires_by(token: UserOAuthToken, moment: float | None) -> bool:
    """Whether the token expires by that time (Unix time); always true without a time. The refresh
    token counts: the platform renews an access token by itself. Raises PlatformProtocolError if
    the service's time cannot be read."""
    if moment is None:
        return True
    end = token.decided("refresh_token_expires_at") or token.decided("access_token_expires_at")
    return end is not None and bool(end.timestamp() <= moment)


async def _dbt_sync(api: Api, *, sync_job_id: str, deployment_id: int | None) -> Seen:
    """Whether the sync is complete. Raises DbtSyncFailedError, DbtSyncCancelledError."""
    deployment = api.config.resolve_deployment_id(deployment_id)
    outcome = await dbt_run.poll(api, deployment, sync_job_id)
    if outcome is None:
        return None
    return {
        "sync_job_id": outcome.sync_job_id,
        "branch_name": outcome.branch_name,
        "status": dbt_run.SUCCEEDED,
        "result": outcome.result,
    }


async def _build(
    api: Api,
    *,
    branch_name: str | None,
    hash: str | None,  # noqa: A002 - the sensor's argument
    deployment_id: int | None,
) -> Seen:
    """Whether the branch, or production without a name, is built, with `hash` from that commit.
    Raises BranchNotFoundError, BranchNotActiveError, BranchNotServedError, BuildFailedError."""
    deployment = api.config.resolve_deployment_id(deployment_id)
    if branch_name is None:
        branch_name = await _production_branch(api, deployment)
    outcome = await poll_awake(api, BuildWanted(deployment, branch_name, hash))
    if isinstance(outcome, Build):
        return {"branch_name": branch_name, **outcome.to_json()}
    api.report(NotYet(str(outcome)))
    return None


async def _production_branch(api: Api, deployment: int) -> str:
    """The name of the production branch."""
    try:
        settings = await api.call(get_deployment_settings(deployment_id=deployment), once=True)
    except PlatformError as error:
        await raise_if_missing(
            api, deployment, error, reason="The task does not know when production is built"
        )
        raise
    name: str | None = settings.deploy_branch_name
    if not name:
        raise PlatformError(
            "The service does not name the production branch. Give branch_name.",
            where=f"deployment {deployment}",
        )
    return name


async def _chat_thread(
    api: Api,
    *,
    chat_id: str,
    session_settings: dict[str, Any] | None,
    agent: str | None = None,
    agent_id: int | str | None = None,
) -> Seen:
    """Whether the thread is not streaming."""
    settings = api.config.resolve_session_settings(session_settings)
    timeout = api.config.stream_idle_timeout
    asked = await find_agent_id(api, agent, agent_id)
    if await thread_is_streaming(api, chat_id, settings, timeout=timeout, agent_id=asked):
        api.report(NotYet(f"The thread is still streaming (chat {quote_service(chat_id)})"))
        return None
    return {"chat_id": chat_id, "is_streaming": False}


async def _report(
    api: Api,
    *,
    report_id: int | None,
    name: str | None,
    folder_id: int | None,
    updated_after: str | None,
    refreshed_after: str | None = None,
    deployment_id: int | None,
) -> Seen:
    """Whether the report exists and was updated and refreshed after the given times (ISO 8601)."""
    deployment = api.config.resolve_deployment_id(deployment_id)
    if report_id is not None:
        where = f"report {report_id}, deployment {deployment}"
        there = await _one(
            api,
            get_report(deployment_id=deployment, report_id=report_id),
            list_reports(deployment_id=deployment, query={"first": 1}),
        )
    else:
        where = f"report {quote_service(name)!r}, deployment {deployment}"
        query = {"search": name, "folderId": folder_id}
        there = await _all(
            api,
            list_reports(deployment_id=deployment, query=query),
            lambda report: report.name == name,
        )
        if len(there) > 1:
            choose_named("report", str(name), {one.id: (one.name,) for one in there})
    after = None if updated_after is None else Timestamp.parse(updated_after)
    refreshed = None if refreshed_after is None else Timestamp.parse(refreshed_after)
    fresh = [one for one in there if is_fresh(one, after) and is_refreshed(one, refreshed)]
    times = {"updated": updated_after, "refreshed": refreshed_after}
    awaited = " or ".join(f"{done} since {time}" for done, time in times.items() if time)
    state = f"has not been {awaited}" if there else "does not exist yet"
    return await _first(api, fresh, f"The report {state} ({where})")


async def _notification(
    api: Api,
    *,
    notification_id: int | None,
    is_enabled: bool | None,
    deployment_id: int | None,
    dashboard: str | None = None,
    **filters: Any,
) -> Seen:
    """Whether the schedule, or one that matches the filters, exists and is enabled as wanted."""
    deployment = api.config.resolve_deployment_id(deployment_id)
    if notification_id is not None:
        subject = "The notification"
        where = f"notification {notification_id}, deployment {deployment}"
        there = await _one(
            api,
            get_notification(deployment_id=deployment, id=notification_id),
            list_notifications(deployment_id=deployment, query={"first": 1}),
        )
    else:
        if dashboard is not None:
            filters["dashboard_id"] = await find_id(api, "dashboard", dashboard, deployment)
        subject = "A notification that matches the filters"
        where = f"deployment {deployment}"
        there = await _all(api, list_notifications(deployment_id=deployment, query=filters))
    switched = [notification for notification in there if is_switched(notification, is_enabled)]
    state = (
        f"is not {'enabled' if is_enabled else 'disabled'} yet" if there else "does not exist yet"
    )
    return await _first(api, switched, f"{subject} {state} ({where})")


async def _user_oauth_token(
    api: Api,
    *,
    integration_id: int,
    target_statuses: list[str] | None,
    user_id: int | None,
    expires_within: float | None = None,
) -> Seen:
    """Whether a token for the integration (and the user, if given) has one of the statuses, and
    expires within so many seconds."""
    tokens = await _all(
        api,
        list_user_oauth_tokens(),
        lambda token: token.integration_id == integration_id and user_id in (None, token.user_id),
    )
    moment = None if expires_within is None else api.clock() + expires_within
    wanted = [
        token
        for token in tokens
        if (target_statuses is None or has_status(token, target_statuses))
        and expires_by(token, moment)
    ]
    statuses = ", ".join(dict.fromkeys(quote_service(token.status) for token in tokens))
    state = f"The status of the token is {statuses}" if tokens else "No token exists yet"
    if tokens and moment is not None:
        state += ", and no such token expires in that time"
    return await _first(api, wanted, f"{state} (OAuth integration {integration_id})")


KINDS: dict[str, Callable[..., Awaitable[Seen]]] = {
    "dbt_sync": _dbt_sync,
    "build": _build,
    "chat_thread": _chat_thread,
    "report": _report,
    "notification": _notification,
    "user_oauth_token": _user_oauth_token,
}


async def _first(api: Api, wanted: Sequence[ResponseModel], otherwise: str) -> Seen:
    """Return the first wanted resource. Notifies of `otherwise` if there is none."""
    if wanted:
        return wanted[0].to_json()
    api.report(NotYet(otherwise))
    return None


async def _one(api: Api, get: Operation[T], probe: Operation[Any]) -> list[T]:
    """Return the resource in a list, or an empty list if it does not exist. The probe lists the
    same deployment: it raises PlatformNotFoundError if the deployment does not exist."""
    try:
        item = await api.call(get, once=True)
    except PlatformNotFoundError:
        await api.call(probe, once=True)
        return []
    return [item]


async def _all(
    api: Api, operation: Operation[Page[T]], wanted: Callable[[T], bool] = lambda _: True
) -> list[T]:
    """Return the wanted rows of a whole list. A failure is left to the next poll."""
    walk = PageWalk(operation)
    items: list[T] = []
    while walk.operation is not None:
        page = await api.call(walk.operation, once=True)
        items += filter(wanted, walk.add_page(page))
    return items
