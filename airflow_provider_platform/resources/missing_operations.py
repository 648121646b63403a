"""Whether a tenant lacks an operation: older releases, and features that are not activated.

A tenant answers a path that it does not know with its web page under 200, or with an error. A wrong
address and a wrong deployment look the same, so `check_tenant` asks for something that every
release has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_provider_platform.client.errors import (
    PlatformAddressError,
    PlatformApiError,
    PlatformError,
    PlatformNotFoundError,
)
from airflow_provider_platform.resources.reports import list_reports

if TYPE_CHECKING:
    from airflow_provider_platform.client.api import Api

_MISSING = frozenset({404, 405})


def may_be_missing(error: PlatformError) -> bool:
    """Whether an error can mean that the tenant lacks the operation."""
    if isinstance(error, PlatformApiError):
        return error.status in _MISSING
    return isinstance(error, PlatformAddressError)


async def check_tenant(
    api: Api, deployment_id: int, missing: PlatformError, deadline: float | None
) -> None:
    """Raise `missing` where the address is not the platform's, or the deployment does not exist.
    Every release can list its reports."""
    query = {"first": 1}
    try:
        await api.call(list_reports(deployment_id=deployment_id, query=query), deadline=deadline)
    except (PlatformAddressError, PlatformNotFoundError):
        raise missing from None
    except PlatformError:
        return
