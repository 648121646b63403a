"""Pictures of charts: a Vega-Lite specification and its rows become PNG, SVG or HTML.

An agent of your own writes the specification, and drawing it runs it like a program. So nothing in
it is loaded (`specification`), a child process without your environment draws it within limits of
time and memory (`renderer`, `worker`), and a picture that shows nothing is an error (`picture`).
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
