"""Arguments of operators: values known when the DAG is parsed, and values known after rendering.

`client.argument_rules` has the rules for values. This module has what only a task knows:
templates, and the checks that import more than a DAG file may. An argument without a template is
checked when the DAG is parsed, so that a mistake shows before the first run.
"""

from __future__ import annotations

from typing import Any

from airflow_provider_platform._airflow import SET_DURING_EXECUTION
from airflow_provider_platform.client.argument_rules import (
    at_most_one,
    boolean,
    boolean_or,
    branch,
    by_rule,
    choice,
    identifier,
    mapping,
    moment,
    names,
    number,
    optional,
    optional_agent,
    optional_boolean,
    optional_branch,
    optional_choice,
    optional_id,
    optional_text,
    or_none,
    refuse,
    seconds,
    sequence,
    text,
    whole_number,
    within,
)

__all__ = [
    "at_most_one",
    "boolean",
    "boolean_or",
    "branch",
    "by_rule",
    "choice",
    "described",
    "given",
    "identifier",
    "is_template",
    "mapping",
    "message_id",
    "moment",
    "names",
    "number",
    "optional",
    "optional_agent",
    "optional_boolean",
    "optional_branch",
    "optional_choice",
    "optional_id",
    "optional_text",
    "or_none",
    "refuse",
    "seconds",
    "sequence",
    "session_settings",
    "stored",
    "text",
    "whole_number",
    "within",
]


def is_template(value: Any) -> bool:
    """Return whether the value is known only after rendering: a template, or an output of a
    task."""
    if isinstance(value, str):
        return "{{" in value or "{%" in value
    if isinstance(value, dict):
        return any(map(is_template, (*value.keys(), *value.values())))
    if isinstance(value, list | tuple | set):
        return any(map(is_template, value))
    return hasattr(value, "resolve") or value is SET_DURING_EXECUTION


def given(**values: Any) -> dict[str, Any]:
    """Return the arguments that are not None: None counts as absent, and is not sent as null."""
    return {name: value for name, value in values.items() if value is not None}


def stored(answer: Any) -> Any:
    """Return an answer as XCom may store it: with stars instead of credentials."""
    from pydantic_core import to_jsonable_python

    return to_jsonable_python(answer)


def described(name: str, value: Any, *, schema: str) -> dict[str, Any] | None:
    """Return an object that this schema of the service describes, under the service's names. Raises
    PlatformInputError, which names the field."""
    given_object = mapping(name, value)
    if given_object is None or is_template(given_object):
        return given_object
    from airflow_provider_platform.client.operation import check_described
    from airflow_provider_platform.client.operations_table import definition, fit

    fitted: dict[str, Any] = fit(definition(schema), given_object, rendered=True)
    check_described(name, definition(schema), fitted)
    return fitted


@or_none
def session_settings(name: str, value: Any) -> dict[str, Any] | None:
    """Return the session settings of a chat call, checked as soon as they are known. Raises
    PlatformInputError."""
    settings = mapping(name, value)
    if settings is not None and not is_template(settings):
        from airflow_provider_platform.client.config import session_settings as check

        with within(name):
            check(settings)
    return settings


@or_none
def message_id(name: str, value: Any) -> str:
    """Return the id of a message, None if it is absent. Raises PlatformInputError."""
    from airflow_provider_platform.resources.chat.request import check_message_id

    given_id = text(name, value)
    try:
        check_message_id(given_id)
    except ValueError as error:
        raise refuse(name, str(error), value) from None
    return given_id
