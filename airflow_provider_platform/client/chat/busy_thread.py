"""How the service refuses a message whose thread is still answering another message."""

from __future__ import annotations

from airflow_provider_platform.client.errors import PlatformApiError, PlatformError

_STREAM_IN_PROGRESS = "Streaming for thread is in progress"


def says_busy(text: object) -> bool:
    """Return whether the text of an error means that the thread is answering another message."""
    return _STREAM_IN_PROGRESS.lower() in str(text).lower()


def is_busy(error: PlatformError) -> bool:
    """Return whether the service refused a request because its thread is answering another
    message."""
    return isinstance(error, PlatformApiError) and says_busy(error.service_message)
