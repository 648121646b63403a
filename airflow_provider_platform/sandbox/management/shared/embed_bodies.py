"""Bodies that describe who is embedded: attributes, profiles, settings of a session."""

from __future__ import annotations

from airflow_provider_platform.sandbox.http import checks
from airflow_provider_platform.sandbox.management.shared import schedules

_OPEN_TEXT = checks.string(min_length=0)
_SCALAR = checks.either(_OPEN_TEXT, checks.number())
EMAIL = checks.string(pattern=r"[^@\s]+@[^@\s]+")
URL = checks.string(pattern=r"https?://\S+")
_LOCALE = checks.string(pattern=r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*", max_length=35)

USER_ATTRIBUTE = checks.nullable_fields(
    {
        "name": checks.needed(checks.string()),
        "value": checks.either(_SCALAR, checks.boolean, checks.array(_SCALAR)),
    }
)
PERSON = {
    "userId": checks.integer(),
    "email": checks.string(),
    "embedTenantName": checks.string(),
    "externalId": checks.string(),
    "groups": checks.array(checks.string()),
    "securityContext": checks.mapping,
    "userAttributes": checks.array(USER_ATTRIBUTE),
}
"""Fields that name a user, of the console or an embedded one, for whom something is rendered."""
USER_ATTRIBUTE_DEFINITION = checks.nullable_fields(
    {
        "name": checks.needed(checks.string()),
        "type": checks.needed(
            checks.string(one_of=("string", "number", "boolean", "string_array", "number_array"))
        ),
        "defaultValue": _OPEN_TEXT,
        "description": _OPEN_TEXT,
        "displayName": _OPEN_TEXT,
    }
)
GROUP_DEFINITION = checks.nullable_fields(
    {"name": checks.needed(checks.string()), "description": _OPEN_TEXT}
)
USER_PROFILE = checks.nullable_fields({"displayName": _OPEN_TEXT, "picture": URL})
TENANT_PROFILE = checks.nullable_fields({"displayName": _OPEN_TEXT})
SESSION_SETTINGS = checks.nullable_fields(
    {
        "allowAi": checks.boolean,
        "allowChatWorkspaceAuthoring": checks.boolean,
        "locale": _LOCALE,
        "showAiWidgets": checks.boolean,
        "showDashboardChat": checks.boolean,
        "showDashboardSettings": checks.boolean,
        "showGroupByCube": checks.boolean,
        "showMemberNames": checks.boolean,
        "showWorkbookChat": checks.boolean,
        "showWorkbookShare": checks.boolean,
        "timezone": schedules.TIME_ZONE,
    }
)
_INPUT = checks.nullable_fields({"backgroundColor": _OPEN_TEXT, "borderColor": _OPEN_TEXT})
THEME = checks.nullable_fields(
    {
        "analyticsChat": checks.nullable_fields(
            {"backgroundColor": _OPEN_TEXT, "chatInput": _INPUT}
        ),
        "chat": checks.nullable_fields({"inputColor": _OPEN_TEXT}),
        "font": _OPEN_TEXT,
        "primaryColor": _OPEN_TEXT,
    }
)
