"""How the platform's own pages look: colours, logo and fonts."""

from __future__ import annotations

from airflow_provider_platform.client.operations.models import JsonObject, Number, ResponseModel


class AppThemePalette(ResponseModel):
    """The colours of the pages."""

    accent: JsonObject | None = None
    base: JsonObject | None = None
    contrast_level: Number | None = None
    pastel: bool | None = None
    surface_mode: str | None = None
    themes: JsonObject | None = None


class AppTheme(ResponseModel):
    """How the pages look."""

    palette: AppThemePalette | None = None
    logo_url: str | None = None
    light: JsonObject | None = None
    dark: JsonObject | None = None
    typography: JsonObject | None = None
