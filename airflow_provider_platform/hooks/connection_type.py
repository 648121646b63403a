"""The connection type `platform` and its form, built from the table of the connection's fields.

Airflow 3.2 and later show the form from the provider metadata, and do not call the hook's form
methods. Airflow 3.1 calls these methods, and Airflow 3.0 calls them only if WTForms is installed.
Without WTForms, Airflow 3.0 shows only the standard fields, with its own labels. This module builds
both the metadata and what the methods return. Airflow's API server loads it to list the providers,
so it imports only the standard library and the table.
"""

from __future__ import annotations

import json
from importlib import import_module
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.client.connection_fields import FIELDS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_provider_platform.client.connection_fields import AnyField, Kind

CONNECTION_TYPE = "platform"
HOOK_NAME = "Analytics Platform"
HOOK_CLASS = "airflow_provider_platform.hooks.sql.PlatformSqlHook"
"""The hook of a connection: a `PlatformHook` that Airflow's own SQL operators take too."""

HIDDEN_FIELDS = ("login", "schema")
"""Standard fields that mean nothing here."""

_JSON_TYPES: dict[Kind, str] = {
    "text": "string",
    "secret": "string",
    "integer": "integer",
    "switch": "boolean",
    "object": "object",
}


def extra_fields(fields: Iterable[AnyField] = FIELDS) -> list[AnyField]:
    """Return the fields that are kept in the connection's `extra`, each under its own name."""
    return [field for field in fields if field.place == "extra"]


def connection_type(fields: Iterable[AnyField] = FIELDS) -> dict[str, Any]:
    """Return the entry of `connection-types` in the provider metadata."""
    fields = tuple(fields)
    return {
        "connection-type": CONNECTION_TYPE,
        "hook-class-name": HOOK_CLASS,
        "hook-name": HOOK_NAME,
        "ui-field-behaviour": {
            name.replace("_", "-"): value for name, value in field_behaviour(fields).items()
        },
        "conn-fields": {field.name: _metadata(field) for field in extra_fields(fields)},
    }


def field_behaviour(fields: Iterable[AnyField] = FIELDS) -> dict[str, Any]:
    """Return which standard fields are hidden, and the labels of the others."""
    standard = [field for field in fields if field.place != "extra"]
    return {
        "hidden_fields": list(HIDDEN_FIELDS),
        "relabeling": {field.place: field.form_label or field.label for field in standard},
        "placeholders": {
            field.place: field.placeholder for field in standard if field.placeholder is not None
        },
    }


def form_widgets(fields: Iterable[AnyField] = FIELDS) -> dict[str, Any]:
    """Return a WTForms field for every field in `extra`; none if WTForms is not installed."""
    try:
        wtforms, validators = import_module("wtforms"), import_module("wtforms.validators")
    except ImportError:
        return {}
    return {field.name: _widget(wtforms, validators, field) for field in extra_fields(fields)}


def _metadata(field: AnyField) -> dict[str, Any]:
    """Return the field as an entry of `conn-fields`. The field may be left empty."""
    schema: dict[str, Any] = {"type": [_JSON_TYPES[field.kind], "null"], "section": field.section}
    if field.kind == "secret":
        schema["format"] = "password"
    if field.choices:
        schema["enum"] = list(field.choices)
    default = field.default if field.template is None else dict(field.template)
    # The form counts in whole numbers: the least one above 0 is 1.
    minimum = field.minimum if field.above is None else field.above + 1
    limits = {"default": default, "minimum": minimum, "maximum": field.maximum}
    schema |= {keyword: value for keyword, value in limits.items() if value is not None}
    return {"label": field.label, "description": field.description, "schema": schema}


def _widget(fields: Any, validators: Any, field: AnyField) -> Any:
    """Return the field for WTForms. A JSON object is entered as a string."""
    widgets = {
        "secret": fields.PasswordField,
        "integer": fields.IntegerField,
        "switch": fields.BooleanField,
    }
    rules = [validators.Optional()]
    if field.choices:
        rules.append(validators.any_of(list(field.choices)))
    return widgets.get(field.kind, fields.StringField)(
        label=field.label,
        description=field.description,
        default=json.dumps(dict(field.template)) if field.template else field.default,
        validators=rules,
    )
