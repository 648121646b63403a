"""Whether a tenant lacks an operation, and the one error that says so.

There are two tenants: the newest one has every operation, and an older one has those that the
service description shows. A feature may also not be activated for an account. A tenant answers a
path that it does not know with its web page under 200, with 404 or with 405. A wrong address and a
wrong deployment answer the same, so `raise_if_missing` asks for something that every tenant has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_platform.client.errors import (
    OperationMissingError,
    PlatformAddressError,
    PlatformApiError,
    PlatformError,
    PlatformNotFoundError,
    PlatformPermissionError,
)
from airflow_provider_platform.client.repeats import is_transient
from airflow_provider_platform.resources.reports import list_reports

if TYPE_CHECKING:
    from airflow_provider_platform.client.api import Api

_MISSING = frozenset({404, 405})


def may_be_missing(error: PlatformError) -> bool:
    """Whether an error can mean that the tenant lacks the operation."""
    if isinstance(error, PlatformApiError):
        return error.status in _MISSING
    return isinstance(error, PlatformAddressError) and error.is_html


async def raise_if_missing(
    api: Api,
    deployment_id: int,
    error: PlatformError,
    *,
    reason: str,
    step: str = "",
    permission: str | None = None,
    deadline: float | None = None,
) -> None:
    """Raise OperationMissingError if this error of a call means that the tenant lacks the
    operation. Raise the error itself if the address is not the platform's, or the deployment does
    not exist. Return if the error means something else.

    `reason` says what was not done, `step` what to do instead. With `permission`, a tenant that
    refuses the operation (403) lacks it too: the caller does without it.
    """
    if permission is not None and isinstance(error, PlatformPermissionError):
        raise OperationMissingError(
            f"{reason}: the service refuses the operation (403). The token probably lacks the "
            f"permission {permission}.{step and ' ' + step}",
            where=error.where,
        ) from error
    if not may_be_missing(error):
        return
    try:
        query = {"first": 1}
        await api.call(list_reports(deployment_id=deployment_id, query=query), deadline=deadline)
    except (PlatformAddressError, PlatformNotFoundError):
        raise error from None
    except PlatformError as failure:
        if is_transient(failure):
            raise
    raise OperationMissingError(
        f"{reason}: this tenant does not have the operation. Its platform is older, or the feature "
        f"is not activated for the account.{step and ' ' + step}",
        where=error.where,
    ) from error
