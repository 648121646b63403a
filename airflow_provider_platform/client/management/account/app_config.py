"""The account's app configuration: theme, titles, embedding, time zone."""

from __future__ import annotations

from airflow_provider_platform.client.operations.models import JsonObject, ResponseModel
from airflow_provider_platform.client.operations.operation import endpoint


class AppTheme(ResponseModel):
    """How the platform's own pages look: colours, logo and fonts."""

    palette: JsonObject | None = None
    logo_url: str | None = None
    light: JsonObject | None = None
    dark: JsonObject | None = None
    typography: JsonObject | None = None


class LocalizedValue(ResponseModel):
    """A text in one language."""

    locale: str | None = None
    value: str | None = None


class CreatorMode(ResponseModel):
    """What users who build for themselves are shown."""

    localized_titles: list[LocalizedValue] | None = None
    show_generated_sql: bool | None = None
    show_semantic_sql: bool | None = None
    show_workspace_title: bool | None = None
    workspace_title: str | None = None


class EmbedSettings(ResponseModel):
    """What embedded pages show; `locale` is a BCP 47 tag."""

    allow_ai: bool | None = None
    enable_dashboard_comments: bool | None = None
    locale: str | None = None
    show_ai_widgets: bool | None = None
    show_dashboard_chat: bool | None = None
    show_workbook_chat: bool | None = None
    timezone: str | None = None


class AppConfigResponse(ResponseModel):
    """The configuration of the account."""

    app_theme: AppTheme | None = None
    apply_theme_globally: bool | None = None
    creator_mode: CreatorMode | None = None
    embedding: EmbedSettings | None = None
    restrict_data_download: bool | None = None
    sheets_agent_chat_enabled: bool | None = None
    sheets_ui: JsonObject | None = None
    timezone_settings: JsonObject | None = None
    dashboard_apps_enabled: bool | None = None
    ai_paywalled: bool | None = None


@endpoint("GET", "/v1/app-config", operation_id="getAppConfig")
def get_app_config() -> AppConfigResponse:
    """The app configuration: theme, titles, embedding."""
