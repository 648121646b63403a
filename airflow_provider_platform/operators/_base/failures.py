"""How a failure reaches Airflow: whether a retry may help, and what the log shows of it."""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from airflow_provider_platform.client.errors import PlatformError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

log = logging.getLogger(__name__)


@contextmanager
def airflow_errors() -> Iterator[None]:
    """Convert errors for which a retry does not help into AirflowFailException. Other errors keep
    their type, so that a retry policy can distinguish them."""
    try:
        yield
    except PlatformError as error:
        if error.retryable:
            raise
        from airflow_provider_platform._airflow import AirflowFailException

        raise AirflowFailException(error.message) from error


class ShortTraceback(AbstractContextManager[None]):
    """Shorten the traceback of an expected error. Use it as the outermost block of what Airflow
    calls.

    Airflow then prints only the error's message. The frames of this package and of libraries, and
    the causes, are logged at debug level. The error keeps its type, and in `__context__` the error
    that caused it.
    """

    def __exit__(
        self,
        error_class: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        origin = error if isinstance(error, PlatformError) else error and error.__cause__
        if error is None or not isinstance(origin, PlatformError):
            return
        log.debug("Where it failed:", exc_info=(type(error), error, traceback))
        cause = error.__cause__ or error.__context__
        error.__cause__ = None  # which also has the context not shown
        error.__context__ = cause
        # What is raised on has no frames but those of the callers of this block.
        error.__traceback__ = None
