"""Dashboards as they are written: drafts and what is to be published."""

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


class DashboardResponsiveLayoutsInput(InputModel):
    """Where a widget is, per width of the screen."""

    lg: DashboardWidgetPositionInput | None = None
    md: DashboardWidgetPositionInput | None = None
    sm: DashboardWidgetPositionInput | None = None
    xs: DashboardWidgetPositionInput | None = None
    xxs: DashboardWidgetPositionInput | None = None


class DashboardWidgetDraftInput(InputModel):
    """A widget of a draft; without `id` the service gives it one."""

    type: WidgetType
    position: DashboardWidgetPositionInput
    id: str | None = Field(default=None, max_length=128)
    config: dict[str, Any] | None = None
    responsive_layouts: DashboardResponsiveLayoutsInput | None = None
    style: dict[str, Any] | None = None


class DashboardWidgetInput(InputModel):
    """A widget to publish."""

    id: str = Field(max_length=128, min_length=1)
    type: WidgetType
    position: DashboardWidgetPositionInput
    config: dict[str, Any] | None = None
    responsive_layouts: DashboardResponsiveLayoutsInput | None = None
    style: dict[str, Any] | None = None


class DashboardBreakpointsInput(InputModel):
    """The widths of the screen at which the layout changes."""

    lg: int | None = None
    md: int | None = None
    sm: int | None = None
    xs: int | None = None
    xxs: int | None = None


class DashboardBreakpointColsInput(InputModel):
    """Columns of the grid, per width of the screen."""

    lg: int | None = None
    md: int | None = None
    sm: int | None = None
    xs: int | None = None
    xxs: int | None = None


class DashboardLayoutInput(InputModel):
    """The grid of a dashboard."""

    breakpoints: DashboardBreakpointsInput | None = None
    cols: DashboardBreakpointColsInput | None = None
    container_padding: list[int] | None = None
    margin: list[int] | None = None
    row_height: int | None = None


class DashboardAppManifestInput(InputModel):
    """What a dashboard app depends on."""

    dependencies: dict[str, str] | None = None
    version: int | None = None


class DashboardAppSourceInput(InputModel):
    """The source of a dashboard that is an app."""

    entry: str | None = Field(default=None, max_length=255)
    files: dict[str, str] | None = None
    html: str | None = None
    manifest: DashboardAppManifestInput | None = None


class ControlThemeBorderSectionInput(InputModel):
    """The border of controls."""

    color: str | None = None
    radius: str | None = None
    style: str | None = None
    width: str | None = None


class ControlThemeTitleSectionInput(InputModel):
    """The title of controls."""

    color: str | None = None
    font_family: str | None = None
    font_size: str | None = None
    font_weight: str | None = None


class ControlThemeSectionInput(InputModel):
    """How controls look."""

    background_color: str | None = None
    border: ControlThemeBorderSectionInput | None = None
    padding: str | None = None
    title: ControlThemeTitleSectionInput | None = None


class WidgetThemeBorderSectionInput(InputModel):
    """The border of widgets."""

    color: str | None = None
    radius: str | None = None
    style: str | None = None
    width: str | None = None


class WidgetThemeTextSectionInput(InputModel):
    """The text of widgets."""

    code_font_family: str | None = None
    color: str | None = None
    font_family: str | None = None
    secondary_color: str | None = None


class WidgetThemeTitleSectionInput(InputModel):
    """The title of widgets."""

    color: str | None = None
    font_family: str | None = None
    font_size: str | None = None
    font_weight: str | None = None


class WidgetThemeSectionInput(InputModel):
    """How widgets look."""

    background_color: str | None = None
    border: WidgetThemeBorderSectionInput | None = None
    margin: str | None = None
    padding: str | None = None
    text: WidgetThemeTextSectionInput | None = None
    title: WidgetThemeTitleSectionInput | None = None


class DashboardThemeSectionInput(InputModel):
    """How the dashboard itself looks."""

    background_color: str | None = None
    padding: str | None = None


class DashboardThemeInput(InputModel):
    """How a dashboard looks."""

    background_color: str | None = None
    controls: ControlThemeSectionInput | None = None
    dashboard: DashboardThemeSectionInput | None = None
    font_family: str | None = None
    primary_color: str | None = None
    theme_id: str | None = None
    widgets: WidgetThemeSectionInput | None = None


class DashboardFrameInput(InputModel):
    """A dashboard but for its widgets."""

    app: DashboardAppSourceInput | None = None
    description: str | None = None
    kind: DashboardKind | None = None
    layout: DashboardLayoutInput | None = None
    settings: dict[str, Any] | None = None
    theme: DashboardThemeInput | None = None
    title: str | None = None


class DashboardConfigDraftInput(DashboardFrameInput):
    """A draft of a dashboard."""

    widgets: list[DashboardWidgetDraftInput] | None = None


class DashboardConfigInput(DashboardFrameInput):
    """A dashboard to publish."""

    widgets: list[DashboardWidgetInput] | None = None
