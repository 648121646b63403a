"""Dashboards as they are written: drafts and what is to be published.

What only says how a dashboard looks (its theme, styles, the settings of a widget) goes to the
service as it is given.
"""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from airflow_provider_platform.client.operations.models import InputModel

DashboardKind = Literal["CLASSIC", "APP"]
WidgetType = Literal[
    "CHART",
    "TEXT",
    "FILTER",
    "AI",
    "TIME_GRAIN",
    "FIELD",
    "PARENT",
    "SPACER",
    "DIVIDER",
    "CONTAINER",
]


class DashboardWidgetPositionInput(InputModel):
    """Where a widget is on the grid."""

    x: int
    y: int
    w: int
    h: int


class DashboardWidgetDraftInput(InputModel):
    """A widget of a draft; without `id` the service gives it one. `responsive_layouts` holds
    positions by the width of the screen: `lg`, `md`, `sm`, `xs`, `xxs`."""

    type: WidgetType
    position: DashboardWidgetPositionInput
    id: str | None = Field(default=None, max_length=128)
    config: dict[str, Any] | None = None
    responsive_layouts: dict[str, Any] | None = None
    style: dict[str, Any] | None = None


class DashboardWidgetInput(DashboardWidgetDraftInput):
    """A widget to publish."""

    id: str = Field(max_length=128, min_length=1)


class DashboardLayoutInput(InputModel):
    """The grid of a dashboard; `breakpoints` and `cols` are numbers by the width of the screen."""

    breakpoints: dict[str, Any] | None = None
    cols: dict[str, Any] | None = None
    container_padding: list[int] | None = None
    margin: list[int] | None = None
    row_height: int | None = None


class DashboardAppSourceInput(InputModel):
    """The source of a dashboard that is an app."""

    entry: str | None = Field(default=None, max_length=255)
    files: dict[str, str] | None = None
    html: str | None = None
    manifest: dict[str, Any] | None = None


class DashboardFrameInput(InputModel):
    """A dashboard but for its widgets."""

    app: DashboardAppSourceInput | None = None
    description: str | None = None
    kind: DashboardKind | None = None
    layout: DashboardLayoutInput | None = None
    settings: dict[str, Any] | None = None
    theme: dict[str, Any] | None = None
    title: str | None = None


class DashboardConfigDraftInput(DashboardFrameInput):
    """A draft of a dashboard."""

    widgets: list[DashboardWidgetDraftInput] | None = None


class DashboardConfigInput(DashboardFrameInput):
    """A dashboard to publish."""

    widgets: list[DashboardWidgetInput] | None = None
