"""Pictures of charts: a Vega-Lite specification and its rows become PNG, SVG or HTML.

The agent writes the specification, and drawing the chart means executing it. So nothing in it is
loaded (`specification`). A child process without the task's environment draws it within limits of
time and memory (`drawing_process`), and a picture that shows nothing is an error (`renderer`).
"""

from __future__ import annotations

from airflow_provider_platform.charts.renderer import (
    FORMATS,
    ChartLimits,
    ChartRenderer,
    Pictures,
    render_chart,
)
from airflow_provider_platform.charts.specification import ChartError

__all__ = ["FORMATS", "ChartError", "ChartLimits", "ChartRenderer", "Pictures", "render_chart"]
