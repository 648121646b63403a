"""Arguments of operators: which of them must keep a value, and what only a task knows of them.

`client.argument_rules` has the rules for values. This module has the one table of what happens if
the value of an argument vanishes, and the checks that import more than a DAG file may.

A value vanishes if the DAG's author gave one, and it renders to nothing: None, an empty string, the
word "None", an empty list or object. This happens if the task that returns the value was skipped,
or somebody marked it as successful. An argument in `NEEDED` names who, where or which, or decides
what passes. Its default would do something else than the author wrote: work in another deployment,
ask as another user, merge into production. So the task fails before it sends anything. An argument
in `OPTIONS` says how: a format, a limit, a way to wait. Its default is meant if it renders to
nothing.
"""

from __future__ import annotations

import re
from copy import copy
from functools import cache
from typing import TYPE_CHECKING, Any

from airflow_provider_platform._airflow import SET_DURING_EXECUTION
from airflow_provider_platform.client.argument_rules import (
    is_absent,
    mapping,
    or_none,
    refuse,
    text,
    within,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

NEEDED: Mapping[str, str] = {
    # connection, deployment
    "platform_conn_id": "use the connection platform_default",
    "deployment_id": "work in the connection's deployment",
    # users, agents, threads
    "session_settings": "ask as the connection's user",
    "agent": "ask the agent of the connection",
    "agent_id": "ask the agent of the connection",
    "chat_id": "ask in a new thread",
    "message_id": "ask under a new id",
    "all_rows_as": "read rows with other permissions",
    "render_as": "render with the permissions of the token's owner",
    "thread_id": "attach another thread",
    "prompt": "ask nothing",
    # branches
    "active_branch_name": "ask production",
    "is_default_branch": "ask another branch",
    "branch_name": "use production or a branch that the service chooses",
    "hash": "accept any commit",
    "into": "merge into production",
    "ref": "sync another ref of the dbt repository",
    "source": "sync from another source",
    "manifest": "sync from another source",
    "output_mode": "write to another place",
    # ids and names
    **dict.fromkeys(
        (
            "report",
            "workbook",
            "dashboard",
            "report_id",
            "workbook_id",
            "dashboard_id",
            "dashboard_public_id",
            "folder_id",
            "name",
        ),
        "use or find another object",
    ),
    **dict.fromkeys(
        ("notification_id", "delivery_id", "sync_job_id", "integration_id", "widget_id", "key"),
        "use or find another object",
    ),
    **dict.fromkeys(("slug", "shared"), "use another name or another workspace"),
    **dict.fromkeys(
        (
            *("placement_id", "external_workbook_id", "result_location", "end_result_cell"),
            *("anchor_cell", "sheet_id", "sheet_name", "host"),
        ),
        "name another place in a spreadsheet",
    ),
    # recipients, filters
    **dict.fromkeys(
        (
            *("recipient_user_id", "recipient_email", "recipient_embed_tenant_name"),
            *("recipient_external_id", "user_id"),
        ),
        "find the objects of everybody",
    ),
    **dict.fromkeys(("recipients", "add", "remove"), "leave the recipients as they are"),
    **dict.fromkeys(("filters", "time_grains", "member_switchers"), "send other rows"),
    "schedule_type": "leave the schedule as it is",
    "timezone": "use the time zone UTC",
    "timezones": "build for the time zone UTC",
    "notification_enabled": "leave the service to decide whether it sends",
    "is_enabled": "accept a schedule that is on or off",
    "updated_after": "accept a report of any age",
    "refreshed_after": "accept a report of any age",
    "target_statuses": "accept any status",
    "expires_within": "accept a token that does not expire",
    "allow_embed": "leave the service to decide who may embed the dashboard",
    # queries and what they prove
    "sql": "run nothing",
    "parameters": "run the query without its values",
    "page_by": "read only the first rows",
    "queries": "compare other queries",
    "measures": "compare other queries",
    "by": "compare totals only",
    "keys": "join the rows by other columns",
    "questions": "ask the platform for an evaluation of its own",
    "question_file": "ask all questions",
    "certified_queries": "compare with other queries",
    "threshold": "accept any share of passed questions",
    "min_measured": "accept that a fifth of the questions was not measured",
    "verify_sql": "verify nothing",
    **dict.fromkeys(
        ("built_on", "contexts", "data_sources", "cubes", "pre_aggregations", "date_range"),
        "build other tables",
    ),
    # any operation
    **dict.fromkeys(("operation", "path", "method", "ids"), "call another operation"),
    "query": "ask for everything",
    "body": "send nothing",
    "config": "publish the saved draft",
}
"""The arguments that must keep a value, each with what the task would do without it."""

OPTIONS = frozenset(
    {
        # waiting and stopping
        *(
            "deferrable",
            "durable",
            "end_from_trigger",
            "poll_interval",
            "timeout",
            "cancel_on_kill",
            "wait_for_build",
        ),
        *("wait_for_completion", "missing_grace", "max_seconds", "parallel", "confirm"),
        # what to do if
        *("if_exists", "if_running", "if_start_lost", "if_thread_busy", "if_unsupported"),
        "on_unknown",
        *("on_chart_error", "on_difference", "on_not_activated", "on_review_required"),
        *("on_truncated", "fail_on_tool_error", "no_regression", "reset_baseline"),
        # limits
        *("max_rows", "max_xcom_bytes", "max_tokens", "max_items", "default_row_limit"),
        *("max_row_limit", "page_rows", "tolerance"),
        # files and formats
        *("output_path", "output_format", "output_options", "format", "layout", "types"),
        *("charts", "chart_fonts", "all_rows", "details", "cache", "notification_format"),
        # the parts of a schedule: its type says which of them are needed (operators.notifications)
        *("minute", "hour", "day_of_week", "day_of_month", "custom_cron"),
        # texts, and switches whose default does less
        *("title", "description", "message", "meta", "workbook_name", "checksum"),
        *("result_checksum", "address_only", "slug_takeover", "notification_ai_summary"),
        *("delete_branch", "remove_on_upstream", "paginate", "headers"),
    }
)
"""The arguments whose default is meant if they render to nothing."""

OPTIONS_INSIDE = frozenset(
    {
        *("session_settings.email", "session_settings.isEphemeral"),
        *("session_settings.ephemeralTtlSeconds", "query.first", "query.after", "query.offset"),
        *("query.limit", "query.page"),
    }
)
"""The same for fields of needed arguments that are objects."""

NOTHING_IS_DONE_WITHOUT: Mapping[str, frozenset[str]] = {
    "PlatformCloseBranchOperator": frozenset({"branch_name"}),
    "PlatformDeleteBranchOperator": frozenset({"branch_name"}),
    "_DeletePassedOperator": frozenset({"hash"}),
}
"""The operators that do nothing if one of these arguments renders to nothing, as their docstrings
say."""

TEXTS_INSIDE = frozenset({"parameters", "body", "config", "manifest"})
"""The needed arguments in which a field may be an empty string."""

EMPTY_ADDS_NOTHING = frozenset({"add", "remove"})
"""The needed arguments of which an empty list does nothing, so that it may come from a task."""


@cache
def needed_by(operator: type) -> Mapping[str, str]:
    """Return the arguments of an operator that must keep a value."""
    free: set[str] = set()
    for base in operator.__mro__:
        free |= NOTHING_IS_DONE_WITHOUT.get(base.__name__, frozenset())
    names = ("platform_conn_id", *operator.checks)  # type: ignore[attr-defined]
    return {name: NEEDED[name] for name in names if name in NEEDED and name not in free}


def vanished(name: str, before: Any, after: Any) -> str | None:
    """Return which part of an argument has vanished: its name, or the place of a field inside, as
    `session_settings.externalId`. `before` is the value before rendering."""
    if is_absent(after):
        return name
    return next(_vanished_inside(name, before, after, texts=name in TEXTS_INSIDE), None)


def _vanished_inside(name: str, before: Any, after: Any, *, texts: bool) -> Iterator[str]:
    if isinstance(before, dict) and isinstance(after, dict):
        pairs = [(f"{name}.{key}", value, after.get(key)) for key, value in before.items()]
    elif isinstance(before, list | tuple) and isinstance(after, list | tuple):
        both = zip(before, after, strict=False)
        pairs = [(f"{name}[{place}]", one, other) for place, (one, other) in enumerate(both)]
    else:
        return
    for place, value, rendered in pairs:
        if not is_template(value) or place in OPTIONS_INSIDE:
            continue
        if is_absent(rendered) and not (texts and rendered == ""):
            yield place
        else:
            yield from _vanished_inside(place, value, rendered, texts=texts)


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


def refuse_rendered_steps(name: str, before: Any, path: Any) -> None:
    """Raise PlatformInputError if rendering has added a `..` to a path. Who starts a run may choose
    a part of the path by a parameter, but not another folder."""
    if _steps(path) > _steps(before):
        raise refuse(name, "has a segment .. that a template or a task added", str(path))


def _steps(path: Any) -> int:
    is_path = isinstance(path, str) or hasattr(path, "__fspath__") or hasattr(path, "open")
    segments = re.split(r"[/\\]", str(path)) if is_path else []
    return sum(segment.strip() == ".." for segment in segments)


MADE_OF_PARTS = frozenset({"active_branch_name", "branch_name", "output_path", "path"})
"""The arguments whose text names something with each of its parts."""
_PART = re.compile(r"{{.*?}}", re.DOTALL)
_NOT_ONLY_PARTS = re.compile(r"{%|{#|{{-|-}}")


def refuse_missing_parts(name: str, before: Any, after: Any) -> None:
    """Raise PlatformInputError if a part of a text has no value: a template that rendered to None,
    or a whole segment of a path that is empty. The text then names something else: the file of
    all whose value is missing, or a list instead of one item."""
    if not isinstance(before, str) or not isinstance(after, str) or _NOT_ONLY_PARTS.search(before):
        return
    around = _PART.split(before.strip())
    match = re.fullmatch("(.*)".join(map(re.escape, around)), after.strip(), re.DOTALL)
    values = match.groups() if match else ()
    for place, value in enumerate(values):
        begins = around[place].endswith(("/", "\\")) or (place == 0 and not around[place])
        # If a value before has a slash, that at the end can belong to the last value: `nightly/`.
        at_end = around[place + 1 :] == [""] and not any("/" in one for one in values[:place])
        ends = at_end or around[place + 1].startswith(("/", "\\", "."))
        if value.strip() == "None" or (begins and ends and not value.strip()):
            template = _PART.findall(before.strip())[place]
            raise refuse(name, f"has no value for {template} after rendering", after)


def is_native(template: Any) -> bool:
    """Return whether Airflow renders a template to a Python value."""
    from jinja2.nativetypes import NativeEnvironment

    return isinstance(template.environment, NativeEnvironment)


def render_text(template: Any, context: Mapping[str, Any]) -> Any:
    """Return the text that a native template renders to; of a template that is one expression, its
    value if it is not a text.

    Jinja's native rendering reads every text as a Python literal: the branch "2025_11" would become
    the number 202511, and the ref "12e4567" infinity. The checks of the arguments read numbers,
    booleans and objects from texts anyway.
    """
    from jinja2 import Undefined

    environment = template.environment
    values: Any = copy(context)
    values.update({name: one for name, one in template.globals.items() if name not in values})
    try:
        nodes = template.root_render_func(
            environment.context_class(environment, values, template.name, template.blocks)
        )
        parts = list(nodes)
    except Exception:  # noqa: BLE001 - Jinja raises it again, with the place in the template
        environment.handle_exception()
    if len(parts) == 1 and not isinstance(parts[0], str | Undefined):
        return parts[0]
    return "".join(map(str, parts))


def stored(answer: Any) -> Any:
    """Return an answer as XCom may store it: with stars instead of credentials."""
    from pydantic_core import to_jsonable_python

    return to_jsonable_python(answer)


def described(name: str, value: Any, *, schema: str) -> dict[str, Any] | None:
    """Return an object that this schema of the service describes, under the service's names. Raises
    PlatformInputError, which names the field."""
    given_object = mapping(name, value)
    if given_object is None:
        return None
    from airflow_provider_platform.client.operation import check_described
    from airflow_provider_platform.client.operations_table import definition, fit

    fitted: dict[str, Any] = fit(definition(schema), given_object, rendered=True)
    check_described(name, definition(schema), fitted)
    return fitted


@or_none
def session_settings(name: str, value: Any) -> dict[str, Any] | None:
    """Return the checked session settings of a chat call. Raises PlatformInputError."""
    settings = mapping(name, value)
    if settings is not None:
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
