"""What a chat returns (`ChatResult`), when failed queries fail the run (`check_tools`), and what
several runs used together (`total_usage`).

The agent can answer although a query failed: it may have corrected its SQL. `fail_on_tool_error`
decides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Self, TypeVar

from airflow_provider_platform.client.choices import FailOnToolError
from airflow_provider_platform.client.errors import ChatToolError
from airflow_provider_platform.client.failed_calls import branch_advice
from airflow_provider_platform.client.json_text import db_safe
from airflow_provider_platform.client.redaction import quote_service
from airflow_provider_platform.resources.chat.tool_calls import UNFINISHED, Query, Search

R = TypeVar("R")

Usage = dict[str, Any]
"""The service's counts of a run: numbers by name, and `models`, a list of names."""


@dataclass
class ChatResult:
    """The result of a chat run: the final answer, the queries behind it and the ids.

    `tool_errors` are the errors of every tool call, queries included. `truncated` says that queries
    may be missing, because records were lost and the thread does not repeat them. Details:
    `searches` of the data model and what the agent thought (`thinking`; a service in development
    mode sends it).
    """

    answer: str
    chat_id: str
    message_id: str
    queries: list[Query] = field(default_factory=list)
    usage: dict[str, Any] | None = None
    tool_errors: list[str] = field(default_factory=list)
    searches: list[Search] = field(default_factory=list)
    thinking: list[str] = field(default_factory=list)
    truncated: bool = False

    def to_json(self, *, details: bool = False) -> dict[str, Any]:
        """Plain JSON: `{"answer", "chat_id", "message_id", "queries", "usage"}`, and `truncated`
        if that is True; with `details` also `searches` and `thinking`, and `user_request`,
        `sent_rows` and `memory_id` of each query."""
        return without_details(as_plain(self), details=details)

    def sanitized(self) -> Self:
        """Return the same result without characters that Airflow cannot store."""
        return with_changed_texts(self, db_safe)


def as_plain(shown: Any) -> dict[str, Any]:
    """Return a result or a thread as plain JSON. Rows and charts are not copied."""
    return {
        field.name: [as_plain(item) for item in value] if _are_dataclasses(value) else value
        for field, value in zip(fields(shown), _fields(shown), strict=True)
    }


def of_this_release(plain: dict[str, Any]) -> dict[str, Any]:
    """Return the plain JSON of a result (`as_plain`) that another release may have stored, with the
    fields of this release: unknown fields are dropped, missing ones have their defaults. Rows and
    charts are not copied."""
    known = _fields_of(ChatResult("", "", ""), plain)
    return {
        **known,
        "queries": [_fields_of(Query(), query) for query in known["queries"]],
        "searches": [_fields_of(Search(), search) for search in known["searches"]],
    }


def with_changed_texts(shown: R, change: Callable[[Any], Any]) -> R:
    """Return a result or a thread (a dataclass of plain JSON and lists of dataclasses) with its
    texts as `change` returns them, or the same object if `change` returns its arguments.

    `change` gets the value of each field, with nested lists without the names of the fields in
    place of dataclasses. It must keep the lengths of lists. Nothing is copied: rows may be as large
    as the caller allows.
    """
    plain = _values(shown)
    changed = [change(value) for value in plain]
    same = all(new is old for new, old in zip(changed, plain, strict=True))
    return shown if same else _made_of(shown, changed)


def _values(shown: Any) -> list[Any]:
    return [
        [_values(item) for item in value] if _are_dataclasses(value) else value
        for value in _fields(shown)
    ]


def _made_of(shown: R, values: list[Any]) -> R:
    changed = [
        [_made_of(item, new) for item, new in zip(old, value, strict=True)]
        if _are_dataclasses(old)
        else value
        for old, value in zip(_fields(shown), values, strict=True)
    ]
    return type(shown)(*changed)


def _fields(shown: Any) -> list[Any]:
    return [getattr(shown, field.name) for field in fields(shown)]


def _are_dataclasses(value: Any) -> bool:
    return type(value) is list and bool(value) and is_dataclass(value[0])


def without_details(plain: dict[str, Any], *, details: bool) -> dict[str, Any]:
    """Return the plain JSON of a result or a turn, without its details unless `details` is set.
    Only a query whose chart was left out has a `chart_error`."""
    kept = {name: value for name, value in plain.items() if name != "tool_errors"}
    if not kept.get("truncated"):
        kept.pop("truncated", None)
    if not details:
        kept = {name: value for name, value in kept.items() if name not in _DETAILS}
    hidden = frozenset() if details else _QUERY_DETAILS
    kept["queries"] = [
        {
            name: value
            for name, value in query.items()
            if name not in hidden and (name != "chart_error" or value is not None)
        }
        for query in plain["queries"]
    ]
    return kept


_DETAILS = frozenset({"searches", "thinking"})
_QUERY_DETAILS = frozenset({"user_request", "sent_rows", "memory_id"})


def _fields_of(default: Any, plain: dict[str, Any]) -> dict[str, Any]:
    return {name: plain.get(name, value) for name, value in as_plain(default).items()}


def count_received(query_errors: Iterable[str | None]) -> int:
    """Return how many queries, given by their errors, have the result or the error that the service
    sent for them."""
    return sum(error != UNFINISHED for error in query_errors)


def check_tools(result: dict[str, Any], rule: FailOnToolError) -> None:
    """Raise ChatToolError if the tool errors of a result, given as plain JSON (`as_plain`), make
    the run a failure under the rule.

    A query whose result did not reach us does not count: nobody knows whether it failed.
    """
    query_errors = [query["error"] for query in result["queries"]]
    failed = [error for error in query_errors if error is not None and error != UNFINISHED]
    every_query = bool(failed) and len(failed) == len(query_errors)
    errors = failed + [
        error for error in result["tool_errors"] if quote_service(error) not in failed
    ]
    if rule == "never" or not (every_query if rule == "all" else errors):
        return
    subject = "Every query of the run failed" if every_query else "A tool call of the run failed"
    reason = quote_service(errors[0]).removesuffix(".")
    advice = branch_advice(errors[0])
    raise ChatToolError(
        f"{subject}: {reason}. "
        f"{advice + ' ' if advice else ''}"
        f"The agent answered: {quote_service(result['answer'])}",
        where=f"chat {result['chat_id']}, message {result['message_id']}",
        usage=result["usage"],
    )


def total_usage(usages: Iterable[Usage]) -> Usage:
    """Return the sum of each count, and the names of all models."""
    summed: Usage = {}
    for usage in usages:
        for name, value in usage.items():
            if isinstance(value, int | float) and not isinstance(value, bool):
                summed[name] = summed.get(name, 0) + value
            elif name == "models" and isinstance(value, list):
                summed[name] = list(dict.fromkeys([*summed.get(name, []), *map(str, value)]))
    return summed
