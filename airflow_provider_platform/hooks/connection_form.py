"""The connection type `platform`: its form, declared once.

The provider metadata (from which Airflow 3.3 and later draw the form), the hook's form methods
(Airflow 3.1 and 3.2) and the check for unknown settings all read this table. It imports nothing
else of this package, because Airflow's API server loads it to list the providers.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

CONNECTION_TYPE = "platform"
HOOK_NAME = "Analytics Platform"
HOOK_CLASS = "airflow_provider_platform.hooks.sql.PlatformSqlHook"
"""The hook of a connection: a `PlatformHook` that Airflow's own SQL operators take too."""

Kind = Literal["text", "secret", "integer", "switch", "object"]

_JSON_TYPES: dict[Kind, str] = {
    "text": "string",
    "secret": "string",
    "integer": "integer",
    "switch": "boolean",
    "object": "object",
}


@dataclass(frozen=True, kw_only=True)
class FormField:
    """One field of the form that is kept in the connection's `extra`, under its own name.

    `template` is what an object's editor shows at first: Airflow's editor formats its text again
    as soon as it is valid JSON, and whoever types a new object is thrown out of it.
    """

    name: str
    label: str
    description: str
    section: str
    kind: Kind = "text"
    default: str | int | bool | None = None
    template: Mapping[str, str] | None = None
    choices: tuple[str, ...] = ()
    minimum: int | None = None
    maximum: int | None = None

    def metadata(self) -> dict[str, Any]:
        """This field as an entry of `conn-fields`; it may be left empty."""
        schema: dict[str, Any] = {
            "type": [_JSON_TYPES[self.kind], "null"],
            "section": self.section,
        }
        if self.kind == "secret":
            schema["format"] = "password"
        if self.choices:
            schema["enum"] = list(self.choices)
        if self.template is not None:
            schema["default"] = dict(self.template)
        for keyword in ("default", "minimum", "maximum"):
            value = getattr(self, keyword)
            if value is not None:
                schema[keyword] = value
        return {"label": self.label, "description": self.description, "schema": schema}


_CHAT = "Chat API (premium or enterprise plan)"
_DEFAULTS = "Deployment and data API"
_LIMITS = "Time-outs and retries"
_NETWORK = "TLS and proxy"
_LINKS = "Links of tasks"

EXTRA_FIELDS: tuple[FormField, ...] = (
    FormField(
        name="chat_url",
        label="Chat address",
        description=(
            "Address of the agent: copy it from the agent's settings in the platform's admin "
            "area. A missing /chat at its end is added. Leave empty for a connection without chat."
        ),
        section=_CHAT,
    ),
    FormField(
        name="chat_api_key",
        label="Chat API key",
        description="The bare key. Give either this or a chat service token, not both.",
        section=_CHAT,
        kind="secret",
    ),
    FormField(
        name="chat_service_token",
        label="Chat service token",
        description=(
            "JWT of the deployment with the scope 'chat' and an externalId, instead of an API key."
        ),
        section=_CHAT,
        kind="secret",
    ),
    FormField(
        name="chat_service_header",
        label="Service token header",
        description="The header that your platform reads the service token from.",
        section=_CHAT,
        choices=("X-Service-Auth-Token", "X-Cube-Auth-Token"),
        default="X-Service-Auth-Token",
    ),
    FormField(
        name="session_settings",
        label="Session settings",
        description=(
            "The user of the agent, with an API key. Enter an externalId (lowercase, no spaces) "
            "between the quotes, or paste another JSON object. Its settings: externalId (a user "
            "of your own) or internalId (an existing user of the platform), one of them; email; "
            "userAttributes, groups, roles and securityContext (permissions, with externalId "
            "only); isEphemeral (false keeps the user and its threads); ephemeralTtlSeconds (how "
            "long the user lives, one week by default); publicDashboardId (a public dashboard); "
            "timezone (as Europe/Berlin), also inside settings; allowChatWorkspaceAuthoring "
            "(false: the agent saves no reports, workbooks or dashboards). Not used with a service "
            "token."
        ),
        section=_CHAT,
        kind="object",
        template={"externalId": ""},
    ),
    FormField(
        name="deployment_id",
        label="Deployment id",
        description="Used by tasks that name no deployment of their own.",
        section=_DEFAULTS,
        kind="integer",
        minimum=1,
    ),
    FormField(
        name="data_api_url",
        label="Data API address",
        description="Only if it differs from the one that the management API names.",
        section=_DEFAULTS,
    ),
    FormField(
        name="default_row_limit",
        label="Row limit without LIMIT",
        description=(
            "Rows that the deployment gives for a query without a LIMIT "
            "(CUBEJS_DB_QUERY_DEFAULT_LIMIT). Leave empty if you do not know it: 10,000 and round "
            "numbers of rows are then reported as possibly cut."
        ),
        section=_DEFAULTS,
        kind="integer",
        minimum=1,
    ),
    FormField(
        name="max_row_limit",
        label="Row limit with LIMIT",
        description=(
            "Rows that the deployment gives at most for a query with a LIMIT "
            "(CUBEJS_DB_QUERY_LIMIT). Leave empty if you do not know it: 50,000 and round numbers "
            "of rows are then reported as possibly cut."
        ),
        section=_DEFAULTS,
        kind="integer",
        minimum=1,
    ),
    FormField(
        name="request_timeout",
        label="Request time-out (seconds)",
        description="How long one management request may take.",
        section=_LIMITS,
        kind="integer",
        minimum=1,
        default=60,
    ),
    FormField(
        name="stream_idle_timeout",
        label="Chat silence limit (seconds)",
        description="A stream that is silent for longer is taken for dead and connected again.",
        section=_LIMITS,
        kind="integer",
        minimum=1,
        default=120,
    ),
    FormField(
        name="max_attempts",
        label="Tries per request",
        description="Including the first; only what is safe to send twice is sent again.",
        section=_LIMITS,
        kind="integer",
        minimum=1,
        maximum=100,
        default=5,
    ),
    FormField(
        name="verify_tls",
        label="Verify TLS certificates",
        description="Leave on. For a private certificate authority give a CA bundle instead.",
        section=_NETWORK,
        kind="switch",
        default=True,
    ),
    FormField(
        name="ca_bundle",
        label="CA bundle",
        description=(
            "File or folder with further CA certificates (PEM), present on every machine that "
            "runs tasks."
        ),
        section=_NETWORK,
    ),
    FormField(
        name="proxy",
        label="Proxy",
        description=(
            "As http://proxy.example.com:3128. When empty, the proxy settings of the machine hold. "
            "Hidden, because it may hold a password."
        ),
        section=_NETWORK,
        kind="secret",
    ),
    FormField(
        name="allow_http",
        label="Allow plain http",
        description=(
            "Credentials then travel unprotected: only for a trusted network. The machine itself "
            "(localhost) needs no permission."
        ),
        section=_NETWORK,
        kind="switch",
        default=False,
    ),
    FormField(
        name="web_links",
        label="Web addresses",
        description=(
            "Where tasks link to, copied from your browser with a placeholder for the id: "
            '{"thread": "https://acme.example.com/chats/{chat_id}"}. Known are agent, thread, '
            "branch, report, workbook, dashboard, notification, export and file; what is left "
            "out has no link."
        ),
        section=_LINKS,
        kind="object",
        template={"thread": ""},
    ),
)

EXTRA_NAMES = frozenset(field.name for field in EXTRA_FIELDS)

HIDDEN_FIELDS = ("login", "schema")
LABELS = {
    "host": "Management API address",
    "password": "Management token",
    # Airflow's Test button sends 0 for an empty port and then refuses the difference.
    "port": "Port (optional; the Test button needs 443)",
}
SETTING_LABELS = {
    "host": LABELS["host"],
    "password": LABELS["password"],
    "port": "Port",
    **{field.name: field.label for field in EXTRA_FIELDS},
}
"""What errors and pages call each setting, before its name in brackets."""
PLACEHOLDERS = {
    "host": "https://acme.example.com/api",
    "port": "443",
}


def connection_type() -> dict[str, Any]:
    """The entry of `connection-types` in the provider metadata."""
    return {
        "connection-type": CONNECTION_TYPE,
        "hook-class-name": HOOK_CLASS,
        "hook-name": HOOK_NAME,
        "ui-field-behaviour": {
            name.replace("_", "-"): value for name, value in field_behaviour().items()
        },
        "conn-fields": {field.name: field.metadata() for field in EXTRA_FIELDS},
    }


def form_widgets() -> dict[str, Any]:
    """A WTForms field for every extra; none if WTForms is not installed."""
    try:
        fields, validators = import_module("wtforms"), import_module("wtforms.validators")
    except ImportError:
        return {}
    return {field.name: _widget(fields, validators, field) for field in EXTRA_FIELDS}


def field_behaviour() -> dict[str, Any]:
    """Which standard fields are hidden, and what the others are called."""
    return {
        "hidden_fields": list(HIDDEN_FIELDS),
        "relabeling": dict(LABELS),
        "placeholders": dict(PLACEHOLDERS),
    }


def _widget(fields: Any, validators: Any, field: FormField) -> Any:
    """The field in WTForms; a JSON object is entered as text."""
    kinds = {
        "secret": fields.PasswordField,
        "integer": fields.IntegerField,
        "switch": fields.BooleanField,
    }
    rules = [validators.Optional()]
    if field.choices:
        rules.append(validators.any_of(list(field.choices)))
    return kinds.get(field.kind, fields.StringField)(
        label=field.label,
        description=field.description,
        default=json.dumps(dict(field.template)) if field.template else field.default,
        validators=rules,
    )
