"""The account's configuration of the app: theme, creator mode, embedding, spreadsheets."""

from __future__ import annotations

from typing import Any

from airflow_provider_platform.sandbox.management.shared.resource import Call, Resource

resource = Resource("/api/v1/app-config", needs=None)


def _scheme(background: str, foreground: str) -> dict[str, Any]:
    return {
        "accentColor": "#4060b0",
        "backgroundColor": background,
        "foregroundColor": foreground,
        "contrast": 60,
        "logoUrl": "https://acme.example.com/logo.svg",
    }


_CONFIG: dict[str, Any] = {
    "appTheme": {
        "palette": {
            "accent": {"color": "#4060b0", "hue": 225, "saturation": 47},
            "surfaceMode": "tinted",
            "contrastLevel": 60,
            "pastel": False,
        },
        "logoUrl": "https://acme.example.com/logo.svg",
        "light": _scheme("#ffffff", "#101418"),
        "dark": _scheme("#101418", "#ffffff"),
        "typography": {
            "fonts": [
                {
                    "id": "inter",
                    "url": "https://acme.example.com/inter.woff2",
                    "format": "woff2",
                    "family": "Inter",
                }
            ],
            "body": {"fontRef": "inter", "fontWeight": 400},
            "heading": {"fontRef": "inter", "fontWeight": 600},
        },
    },
    "applyThemeGlobally": False,
    "creatorMode": {
        "showGeneratedSql": True,
        "showSemanticSql": False,
        "showWorkspaceTitle": True,
        "workspaceTitle": "Reports",
        "localizedTitles": [{"locale": "de", "value": "Auswertungen"}],
    },
    "embedding": {
        "locale": "en-US",
        "timezone": "Europe/Berlin",
        "allowAi": True,
        "showAiWidgets": True,
        "showDashboardChat": True,
        "showWorkbookChat": False,
        "enableDashboardComments": False,
    },
    "restrictDataDownload": False,
    "sheetsAgentChatEnabled": True,
    "sheetsUi": {"showAppliedFilters": True},
    "timezoneSettings": {"enabled": True, "allowUserOverride": True, "timezone": "Europe/Berlin"},
    "dashboardAppsEnabled": False,
    "aiPaywalled": False,
}


@resource.get()
def get_app_config(_call: Call) -> Any:
    return _CONFIG
