"""Pictures of charts: a Vega-Lite specification and its rows become PNG, SVG or HTML."""

from __future__ import annotations

from airflow_provider_platform.results.charts.errors import ChartError
from airflow_provider_platform.results.charts.limits import ChartLimits
from airflow_provider_platform.results.charts.renderer import (
    FORMATS,
    ChartRenderer,
    Pictures,
    render_chart,
)

__all__ = ["FORMATS", "ChartError", "ChartLimits", "ChartRenderer", "Pictures", "render_chart"]
