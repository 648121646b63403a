"""What comes of a chat run: `ChatResult`, and when its tool errors make it a failure."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal, Self

from airflow_provider_platform.client.errors import ChatToolError
from airflow_provider_platform.client.formats.json_text import storable
from airflow_provider_platform.client.formats.service_text import quote_service

ToolErrorRule = Literal["all", "any", "never"]
"""Which tool errors make a run fail: `all` queries failed, `any` tool call failed, or `never`."""

UNFINISHED = "The call had no result when the run ended."
"""The error of a query whose result did not reach us."""


@dataclass
class Query:
    """One query of the agent and what it gave.

    `rows` holds at most `max_rows` rows as the chat API sends them (100 by default), `total_rows`
    how many there are, `truncated` whether some are missing here; all of them come from running
    `sql` on the data API. `chart` is a Vega-Lite specification without data.
    """

    title: str = ""
    description: str = ""
    sql: str = ""
    columns: list[dict[str, str]] = field(default_factory=list)
    rows: list[list[Any]] = field(default_factory=list)
    total_rows: int = 0
    truncated: bool = False
    uuid: str | None = None
    chart: dict[str, Any] | None = None
    error: str | None = None


@dataclass
class ChatResult:
    """What a chat run gave: the final answer, the queries behind it and the ids.

    `tool_errors` are the errors of every tool call, queries included.
    """

    answer: str
    chat_id: str
    message_id: str
    queries: list[Query] = field(default_factory=list)
    usage: dict[str, Any] | None = None
    tool_errors: list[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON: `{"answer", "chat_id", "message_id", "queries", "usage"}`."""
        plain = self.to_event()
        del plain["tool_errors"]
        return plain

    def to_event(self) -> dict[str, Any]:
        """The whole result as plain JSON, for `from_event`."""
        return asdict(self)

    def mended(self) -> Self:
        """The same with no characters that Airflow cannot store."""
        return self.from_event(storable(self.to_event()))

    @classmethod
    def from_event(cls, plain: dict[str, Any]) -> Self:
        """The result that `to_event` described, in a later release perhaps, with more fields."""
        queries = [Query(**_known(Query, query)) for query in plain["queries"]]
        return cls(**{**_known(cls, plain), "queries": queries})


def _known(of: type[Any], plain: dict[str, Any]) -> dict[str, Any]:
    names = {one.name for one in fields(of)}
    return {name: value for name, value in plain.items() if name in names}


def check_tools(result: ChatResult, rule: ToolErrorRule) -> None:
    """Raise ChatToolError where the run's tool errors make it a failure under the rule.

    A query whose result did not reach us counts as none: nobody knows that it failed.
    """
    failed = [
        query.error
        for query in result.queries
        if query.error is not None and query.error != UNFINISHED
    ]
    every_query = bool(failed) and len(failed) == len(result.queries)
    errors = failed + [error for error in result.tool_errors if quote_service(error) not in failed]
    if rule == "never" or not (every_query if rule == "all" else errors):
        return
    what = "every query of the run failed" if every_query else "a tool call of the run failed"
    raise ChatToolError(
        f"chat {result.chat_id}, message {result.message_id}: {what}: "
        f"{quote_service(errors[0])}. The agent answered: {quote_service(result.answer)}"
    )
