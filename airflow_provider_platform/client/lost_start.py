"""What a start came to if its answer was lost: the service's list of runs shows it."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import TYPE_CHECKING, TypeVar

from airflow_provider_platform.client.errors import (
    PlatformError,
    PlatformOutcomeUnknownError,
    PlatformProtocolError,
    PlatformTransportError,
)

if TYPE_CHECKING:
    pass

T = TypeVar("T")


async def find_lost_start(
    cause: PlatformError, find: Awaitable[T | None], *, noun: str, listing: str
) -> T:
    """Return the run that `find` finds. `cause` is the error of the start, `noun` is what was
    started, and `listing` is where `find` looks, both as errors name them.

    Raises PlatformTransportError if nothing was started, or if the listing could not be read, and
    PlatformOutcomeUnknownError if the listing does not show it.
    """
    try:
        found = await find
    except PlatformOutcomeUnknownError as error:
        if isinstance(cause, PlatformProtocolError):  # the service answered: say what
            raise PlatformOutcomeUnknownError(
                f"{cause.reason} {error.reason}", where=error.where
            ) from cause
        raise
    except PlatformError as error:
        # Not the error itself, which describes the request for the listing and not the start.
        raise PlatformTransportError(
            f"{cause.reason} The request may have started a {noun}, but the {listing} could not be "
            f"read: {error.reason.removesuffix('.')}. A retry reads the {listing} again.",
            where=cause.where,
        ) from error
    if found is None:
        raise PlatformTransportError(
            f"{cause.reason} The {listing} shows no new {noun}. A retry starts a {noun}.",
            where=cause.where,
        ) from cause
    return found
