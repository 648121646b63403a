"""`ChartError`: a chart that is not drawn, and why."""

from __future__ import annotations

from airflow_provider_platform.client.errors import PlatformError


class ChartError(PlatformError):
    """A chart could not be drawn; the message is the reason, as one sentence or two."""
