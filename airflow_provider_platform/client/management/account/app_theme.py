"""How the platform's own pages look: colours, logo and fonts."""

from __future__ import annotations

from airflow_provider_platform.client.operations.models import Number, ResponseModel


class AppThemePaletteSeed(ResponseModel):
    """The colour that a scale is made from."""

    color: str | None = None
    hue: Number | None = None
    saturation: Number | None = None


class AppThemeCodePalette(ResponseModel):
    """The colours of code."""

    saturation: Number | None = None


class AppThemePaletteThemes(ResponseModel):
    """The colours of states."""

    code: AppThemeCodePalette | None = None
    danger: AppThemePaletteSeed | None = None
    note: AppThemePaletteSeed | None = None
    success: AppThemePaletteSeed | None = None
    warning: AppThemePaletteSeed | None = None


class AppThemePalette(ResponseModel):
    """The colours of the pages."""

    accent: AppThemePaletteSeed | None = None
    base: AppThemePaletteSeed | None = None
    contrast_level: Number | None = None
    pastel: bool | None = None
    surface_mode: str | None = None
    themes: AppThemePaletteThemes | None = None


class AppThemeScheme(ResponseModel):
    """Colours as older releases had them."""

    accent_color: str | None = None
    background_color: str | None = None
    foreground_color: str | None = None
    contrast: Number | None = None
    logo_url: str | None = None


class ThemeFont(ResponseModel):
    """A font and where it is loaded from."""

    id: str | None = None
    url: str | None = None
    format: str | None = None
    family: str | None = None
    name: str | None = None


class AppThemeFontRef(ResponseModel):
    """A font of the list, and its weight."""

    font_ref: str | None = None
    font_weight: Number | None = None


class AppThemeTypography(ResponseModel):
    """The fonts of the pages."""

    fonts: list[ThemeFont] | None = None
    body: AppThemeFontRef | None = None
    heading: AppThemeFontRef | None = None


class AppTheme(ResponseModel):
    """How the pages look."""

    palette: AppThemePalette | None = None
    logo_url: str | None = None
    light: AppThemeScheme | None = None
    dark: AppThemeScheme | None = None
    typography: AppThemeTypography | None = None
