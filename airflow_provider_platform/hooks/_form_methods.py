"""The connection form for Airflow releases that ask the hook for it (3.1 and 3.2).

Later releases read the same fields from the provider metadata and ignore these methods.
"""

from __future__ import annotations

import json
from importlib import import_module
from typing import Any

from airflow_provider_platform.hooks.connection_form import (
    EXTRA_FIELDS,
    HIDDEN_FIELDS,
    LABELS,
    PLACEHOLDERS,
    FormField,
)


class PlatformConnectionForm:
    """Gives the hook that inherits from it the form of the connection type `platform`."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # Airflow looks into the hook's own namespace and passes over what is inherited.
        for name in ("get_connection_form_widgets", "get_ui_field_behaviour"):
            setattr(cls, name, PlatformConnectionForm.__dict__[name])

    @classmethod
    def get_connection_form_widgets(cls) -> dict[str, Any]:
        """A WTForms field for every extra; none where WTForms is not installed."""
        try:
            fields, validators = import_module("wtforms"), import_module("wtforms.validators")
        except ImportError:
            return {}
        return {field.name: _widget(fields, validators, field) for field in EXTRA_FIELDS}

    @classmethod
    def get_ui_field_behaviour(cls) -> dict[str, Any]:
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
