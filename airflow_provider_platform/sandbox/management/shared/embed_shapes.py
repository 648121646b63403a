"""Bodies that describe who is embedded: attributes, profiles, settings of a session."""

from __future__ import annotations

from airflow_provider_platform.sandbox.http import shapes
from airflow_provider_platform.sandbox.management.shared import schedules

_OPEN_TEXT = shapes.string(min_length=0)
_SCALAR = shapes.either(_OPEN_TEXT, shapes.number())
EMAIL = shapes.string(pattern=r"[^@\s]+@[^@\s]+")
URL = shapes.string(pattern=r"https?://\S+")
_LOCALE = shapes.string(pattern=r"[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*", max_length=35)

USER_ATTRIBUTE = shapes.nullable_fields(
    {
        "name": shapes.string(),
        "value": shapes.either(_SCALAR, shapes.boolean, shapes.array(_SCALAR)),
    },
    required=("name",),
)
PERSON = {
    "userId": shapes.integer(),
    "email": shapes.string(),
    "embedTenantName": shapes.string(),
    "externalId": shapes.string(),
    "groups": shapes.array(shapes.string()),
    "securityContext": shapes.mapping,
    "userAttributes": shapes.array(USER_ATTRIBUTE),
}
"""Fields that name a user, of the console or an embedded one, for whom something is rendered."""
USER_ATTRIBUTE_DEFINITION = shapes.nullable_fields(
    {
        "name": shapes.string(),
        "type": shapes.string(
            one_of=("string", "number", "boolean", "string_array", "number_array")
        ),
        "defaultValue": _OPEN_TEXT,
        "description": _OPEN_TEXT,
        "displayName": _OPEN_TEXT,
    },
    required=("name", "type"),
)
GROUP_DEFINITION = shapes.nullable_fields(
    {"name": shapes.string(), "description": _OPEN_TEXT}, required=("name",)
)
USER_PROFILE = shapes.nullable_fields({"displayName": _OPEN_TEXT, "picture": URL})
TENANT_PROFILE = shapes.nullable_fields({"displayName": _OPEN_TEXT})
SESSION_SETTINGS = shapes.nullable_fields(
    {
        "allowAi": shapes.boolean,
        "allowChatWorkspaceAuthoring": shapes.boolean,
        "locale": _LOCALE,
        "showAiWidgets": shapes.boolean,
        "showDashboardChat": shapes.boolean,
        "showDashboardSettings": shapes.boolean,
        "showGroupByCube": shapes.boolean,
        "showMemberNames": shapes.boolean,
        "showWorkbookChat": shapes.boolean,
        "showWorkbookShare": shapes.boolean,
        "timezone": schedules.TIME_ZONE,
    }
)
_INPUT = shapes.nullable_fields({"backgroundColor": _OPEN_TEXT, "borderColor": _OPEN_TEXT})
THEME = shapes.nullable_fields(
    {
        "analyticsChat": shapes.nullable_fields(
            {"backgroundColor": _OPEN_TEXT, "chatInput": _INPUT}
        ),
        "chat": shapes.nullable_fields({"inputColor": _OPEN_TEXT}),
        "font": _OPEN_TEXT,
        "primaryColor": _OPEN_TEXT,
    }
)
