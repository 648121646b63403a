"""Whether a tenant lacks an operation: older releases, and features that are not activated.

A tenant answers a path that it does not know with its web page under 200, or with an error. A wrong
address and a wrong deployment look the same, so `check_tenant` asks for something that every
release has.
"""

from __future__ import annotations

from airflow_provider_platform.client.errors import (
    PlatformAddressError,
    PlatformApiError,
    PlatformError,
    PlatformNotFoundError,
)
from airflow_provider_platform.client.management.reports.reports import list_reports
from airflow_provider_platform.client.operations.program import Program, call

_MISSING = frozenset({404, 405})


def may_be_missing(error: PlatformError) -> bool:
    """Whether an error can mean that the tenant lacks the operation."""
    if isinstance(error, PlatformApiError):
        return error.status in _MISSING
    return isinstance(error, PlatformAddressError)


def check_tenant(
    deployment_id: int, missing: PlatformError, deadline: float | None
) -> Program[None]:
    """Raise `missing` where the address is not the platform's, or the deployment does not exist.
    Every release can list its reports."""
    query = {"first": 1}
    try:
        yield from call(list_reports(deployment_id=deployment_id, query=query), deadline=deadline)
    except (PlatformAddressError, PlatformNotFoundError):
        raise missing from None
    except PlatformError:
        return
