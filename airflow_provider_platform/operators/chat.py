"""`PlatformChatOperator`: ask the platform's AI agent, and return its answer and query results.

How the run is asked, followed and stopped, and what is logged about it: resources/chat/run.py.
"""

from __future__ import annotations

from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, get_args

from airflow_provider_platform.client import argument_rules as arguments
from airflow_provider_platform.client.choices import (
    CHAT_TIMEOUT,
    MAX_ROWS,
    FailOnToolError,
    IfThreadBusy,
)
from airflow_provider_platform.client.errors import ChatBudgetError, ChatToolError
from airflow_provider_platform.client.redaction import quote_service
from airflow_provider_platform.links import AgentLink, BranchLink, FileLink, ThreadLink, all_links
from airflow_provider_platform.operators._answer_output import (
    ANSWER_CHECKS,
    ANSWER_RULES,
    AnswerOutput,
)
from airflow_provider_platform.operators._arguments import message_id, session_settings
from airflow_provider_platform.operators._base import airflow_traces
from airflow_provider_platform.operators._remote_run import StoppableRunOperator
from airflow_provider_platform.operators._run_record import TryCounters
from airflow_provider_platform.operators._trace import add_span

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence
    from datetime import timedelta

    from airflow_provider_platform._airflow import Context, ObjectStoragePath
    from airflow_provider_platform.client.argument_rules import Rule
    from airflow_provider_platform.client.config import PlatformConfig
    from airflow_provider_platform.client.errors import PlatformError
    from airflow_provider_platform.operators._attempt import Attempt
    from airflow_provider_platform.operators._base import Checks
    from airflow_provider_platform.resources.run_kind import Ids

USAGE_KEY = "platform_usage"
"""The key in the task state store for the usage of each run. Airflow deletes a task's XComs at each
try, but a try that fails has paid for its run too. Before Airflow 3.3 there is no store, so only
the runs of this try are known."""

ALL_SENT_ROWS = 2**31 - 1
"""A file holds every row that the chat sends: 100 of a query by default, which is no limit."""


class PlatformChatOperator(StoppableRunOperator):
    """Ask the agent a question, and return the answer and the query results.

    Use it if a pipeline needs the agent's answer: its words for a mail, its rows for another task,
    or a check of a branch. If you already know the SQL, use `PlatformQueryOperator`: it needs no
    agent.

    Returns, and pushes key by key with `multiple_outputs` (the default): `{"answer": str,
    "chat_id": str, "message_id": str, "queries": [...], "usage": dict | None, "prompt": str | None,
    "user": str | None}`. `prompt` is the question that was asked (None if its template now renders
    to another question) and `user` the external or internal id of the user who asked. Each query is
    `{"title", "description", "sql", "columns": [{"name", "type"}], "rows", "total_rows",
    "truncated", "uuid", "chart", "error"}`. With `output_path` each query has `path`, `chart_paths`
    and `row_count` too (`path` and `row_count` are None if it failed), `folder` is the path of the
    task's folder, and `manifest` that of the manifest file. `truncated` says that rows are missing,
    or may be missing, because the service did not send them. The result itself has `truncated` if
    queries may be missing. A query has a `chart_error` if its `chart` was left out.

    The XCom `total_usage` has the tokens that the service reported for the runs since the last
    clear (without the record of `durable`: for those of this try), even if the task fails. `usage`
    in the result has the tokens of the run that answered.

    :param prompt: the question
    :param chat_id: an existing thread in which to ask; without it the agent starts a new thread
    :param agent: another agent of the deployment to ask, by its name in the platform; needs `host`,
        `password` and `deployment_id` in the connection. A name of digits is an id. Give `agent` or
        `agent_id`, not both
    :param agent_id: another agent of the account to ask, by the id in its address `…/agents/{id}`;
        replaces the agent in the connection's chat address. A thread belongs to its agent. The task
        fails if a template or an output of a task gives no id
    :param message_id: the id under which the question is sent, a Unix time in milliseconds and
        `-message`, such as `{{ (dag_run.run_after.timestamp() * 1000) | int }}-message`. By default
        each run has a new one. While a question runs, another task with the same `message_id` and
        `chat_id` does not ask: it waits for that question's answer. After the end of the run, and
        in another thread, the task asks. Give each question its own id: the task does not compare
        the prompts
    :param session_settings: the user of the chat; replaces the connection's settings as a whole
    :param active_branch_name: a development branch to run the queries on; the task fails if a
        template or an output of a task gives no name
    :param is_default_branch: whether `active_branch_name` is the default branch (default: no)
    :param if_thread_busy: `wait` until the thread is free, or `fail`
    :param fail_on_tool_error: fail the task if `all` queries failed, if `any` tool call failed, or
        `never`
    :param max_rows: rows of each query that go to XCom; the chat itself sends 100 by default
    :param max_xcom_bytes: the largest size of the rows of all queries together in XCom, in bytes of
        JSON (default 262,144, and 16,384 with `output_path`)
    :param max_tokens: how many tokens the runs of this task may use, as `total_usage` counts them.
        If earlier runs have used them, a try asks nothing, and the task fails without a retry. An
        answer that exceeds the limit is returned, with a warning
    :param output_path: a folder to write to (needs the extra `files`). Each task writes into its
        own subfolder: a file for each query that did not fail (with all rows that the chat sends,
        whatever `max_rows` is), `answer.md` and `manifest.json`
    :param output_format: the format of the files with rows: `parquet` (the default), `csv` or
        `jsonl`
    :param output_options: how these files are written, such as `{"compression": "gzip"}`: see the
        page Files
    :param all_rows: run each query again over the data API and write all its rows, up to the
        deployment's row limits; the chat sends only the first rows (100 by default). XCom has the
        first `max_rows` of all rows
    :param all_rows_as: the permissions with which `all_rows` reads: those of the `user` who asks
        (needs a service token), or those of the `connection`, which may show more rows
    :param charts: write the charts too: `png`, `svg`, `html` (needs the extra `charts`)
    :param chart_fonts: a local folder of fonts (ttf, otf, ttc), for scripts that the worker's own
        fonts lack and for fonts that a chart names
    :param types: `service` converts values to the types of their columns; if a value does not fit,
        the whole column is returned as strings, with a warning and a `note` of the column. `strict`
        fails instead; `text` returns all values as strings, and null as None. A dict sets the type
        of single columns of any query, `{"at": "timestamp", "price": "decimal(12, 2)"}`; its key
        `*` sets the mode of the columns that the dict does not name. `{"*": "strict"}` also makes
        the types in the dict strict
    :param on_chart_error: `warn` or `fail` if a chart cannot be drawn
    :param timeout: seconds (or a timedelta) of wall time from submission; an earlier
        `execution_timeout` counts too
    :param details: add to the result what the agent did: its `searches` in the data model
        (`{"search_query", "cubes", "error"}`) and its `thinking` (sent in development mode). Each
        query gets `user_request`, `sent_rows` and `memory_id` (the agent's id of the query, None if
        the service sends none)
    :param multiple_outputs: push the result key by key too, so that `ask.output["answer"]` works
    """

    template_fields_renderers: ClassVar[dict[str, str]] = {"session_settings": "json"}
    kind_path = "chat.run.ChatRunKind"
    operator_extra_links = all_links(ThreadLink, AgentLink, BranchLink, FileLink)
    checks: ClassVar[Checks] = {
        "prompt": arguments.text,
        "chat_id": arguments.optional_text,
        "agent": arguments.optional_text,
        "agent_id": arguments.optional_agent,
        "message_id": message_id,
        "session_settings": session_settings,
        "active_branch_name": arguments.optional_text,
        "is_default_branch": arguments.optional_boolean,
        "if_thread_busy": partial(arguments.choice, choices=get_args(IfThreadBusy)),
        "fail_on_tool_error": partial(arguments.choice, choices=get_args(FailOnToolError)),
        "max_rows": partial(arguments.whole_number, minimum=0),
        "max_xcom_bytes": partial(arguments.or_none(arguments.whole_number), minimum=0),
        "max_tokens": partial(arguments.or_none(arguments.whole_number), minimum=1),
        "details": arguments.boolean,
        **ANSWER_CHECKS,
    }
    rules: ClassVar[Sequence[Rule]] = (
        (("agent", "agent_id"), arguments.at_most_one),
        *ANSWER_RULES,
    )

    def __init__(
        self,
        *,
        prompt: str,
        chat_id: str | None = None,
        agent: str | None = None,
        agent_id: int | str | None = None,
        message_id: str | None = None,
        session_settings: dict[str, Any] | None = None,
        active_branch_name: str | None = None,
        is_default_branch: bool | str | None = None,
        if_thread_busy: IfThreadBusy = "wait",
        fail_on_tool_error: FailOnToolError = "all",
        max_rows: int | str = MAX_ROWS,
        max_xcom_bytes: int | str | None = None,
        max_tokens: int | str | None = None,
        details: bool | str = False,
        output_path: str | os.PathLike[str] | ObjectStoragePath | None = None,
        output_format: str | None = None,
        output_options: dict[str, Any] | None = None,
        all_rows: bool | str = False,
        all_rows_as: str = "user",
        charts: Sequence[str] | str = (),
        chart_fonts: str | os.PathLike[str] | None = None,
        on_chart_error: str = "warn",
        types: str | dict[str, str] = "service",
        timeout: float | timedelta = CHAT_TIMEOUT,
        multiple_outputs: bool = True,
        **kwargs: Any,
    ) -> None:
        super().__init__(timeout=timeout, multiple_outputs=multiple_outputs, **kwargs)
        self.prompt: Any = prompt
        self.chat_id = chat_id
        self.agent = agent
        self.agent_id: Any = agent_id
        self.message_id = message_id
        self.session_settings = session_settings
        self.active_branch_name = active_branch_name
        self.is_default_branch: Any = is_default_branch
        self.if_thread_busy = if_thread_busy
        self.fail_on_tool_error = fail_on_tool_error
        self.max_rows = max_rows
        self.max_xcom_bytes: Any = max_xcom_bytes
        self.max_tokens: Any = max_tokens
        self.details = details
        self.output_path: Any = output_path
        self.output_format: Any = output_format
        self.output_options: Any = output_options
        self.all_rows = all_rows
        self.all_rows_as = all_rows_as
        self.charts: Any = charts
        self.chart_fonts: Any = chart_fonts
        self.on_chart_error = on_chart_error
        self.types: Any = types
        self.validate_known_arguments()

    @property
    def rows_to_read(self) -> int:
        """Return the number of rows to read. A file holds all rows that the chat sends; the rows
        for XCom are cut later, when they are written."""
        in_file = self.output_path is not None and not self.all_rows
        return ALL_SENT_ROWS if in_file else int(self.max_rows)

    def derived_arguments(self) -> dict[str, Any]:
        return {"max_rows": self.rows_to_read}

    def check_before(self, attempt: Attempt) -> None:
        if self.output_path is not None:
            AnswerOutput.of(self).check(attempt.context, attempt.config, self.active_branch_name)
        used = self._count_usage(attempt, {}, None) if self.max_tokens is not None else 0
        if used and used >= self.max_tokens:
            raise ChatBudgetError(
                f"Nothing was sent: the earlier runs of this task used {used:,} tokens, and "
                f"max_tokens is {self.max_tokens:,}. Raise max_tokens or shorten the question. "
                "Then clear the task: the count begins again after a clear."
            )

    def run_failed(self, attempt: Attempt, ids: Ids, error: PlatformError) -> None:
        usage = error.details.get("usage")
        self._count_usage(attempt, ids, usage)
        if airflow_traces():
            add_span(attempt, ids, usage, error)

    def _count_usage(self, attempt: Attempt, ids: Ids, usage: dict[str, Any] | None) -> int:
        """Store the usage of a run, and push the sum of all runs. Return the number of tokens in
        the sum. If this fails, the task continues its work."""
        try:
            record = attempt.record
            summed = add_usage(record.store, record.counters, ids, usage)
            if summed:
                attempt.context["ti"].xcom_push(key="total_usage", value=summed)
        except Exception:
            self.log.warning("The tokens of the task could not be counted.", exc_info=True)
            return 0
        return int(summed.get("totalTokens", 0))

    def finish(self, attempt: Attempt, ids: Ids, outcome: dict[str, Any]) -> dict[str, Any]:
        """Return the task's result. `outcome` holds no secrets, so it is not redacted again."""
        from airflow_provider_platform.hooks.lineage import reported_chat
        from airflow_provider_platform.messages.message import log_lines
        from airflow_provider_platform.resources.chat.result import check_tools, without_details

        used = self._count_usage(attempt, ids, outcome["usage"])
        if outcome["usage"] is None:
            self.log.warning(
                "The tokens of this run are not counted: the service sent its answer and no usage. "
                "total_usage and max_tokens are too low by these tokens."
            )
        if self.max_tokens is not None and used > self.max_tokens:
            self.log.warning(
                "The runs of this task used %s tokens, more than max_tokens (%s). The answer is "
                "paid, so the task returns it.",
                used,
                self.max_tokens,
            )
        queries = outcome["queries"]
        try:
            with reported_chat(self.hook(), queries):
                check_tools(outcome, self.fail_on_tool_error)
        except ChatToolError:
            # The trigger's log may be out of reach: this is the log of the try that failed.
            for query in queries if self.deferrable else ():
                if query["error"] is not None and query["sql"]:
                    self.log.warning("The query that failed: %s", quote_service(query["sql"]))
            raise
        result = {
            **without_details(outcome, details=bool(self.details)),
            "prompt": attempt.client.secrets.redact_data(self._question(ids)),
            "user": _user_of(ids["identity"] or attempt.config.chat_identity(None)),
        }
        for number, query in enumerate(queries, start=1):
            name = _query_name(number, query)
            if query["truncated"] and not self.all_rows:
                self.log.warning("%s", self._cut(query, name, attempt.client.config))
            if query["chart"] is not None:
                self.log.info(
                    "Query %s has a chart. Its specification is in the result, under 'chart'",
                    name,
                )
            if query["chart_error"] is not None:
                self.log.warning(
                    "Query %s has no chart. %s", name, quote_service(query["chart_error"])
                )
        if link := self.link_line():
            self.log.info("%s", link)
        if self.output_path is not None:
            result = AnswerOutput.of(self).write(
                attempt.context,
                attempt.client,
                result,
                question=self._question(ids),
                max_rows=int(self.max_rows),
                branch_name=None if self.is_default_branch else self.active_branch_name,
                warn=attempt.warn,
            )
        else:
            result = self._typed_rows(attempt, result)
        for line in log_lines(result):
            self.log.info("%s", line)
        if airflow_traces():
            add_span(attempt, ids, outcome["usage"])
        return self._for_xcom(result)

    def _typed_rows(self, attempt: Attempt, result: dict[str, Any]) -> dict[str, Any]:
        """Return the result, with values converted to the types of their columns (the chat sends
        strings). Raises ResultValueError for a value that does not fit in strict mode."""
        from airflow_provider_platform.files.save import type_rows
        from airflow_provider_platform.files.types import ColumnTypes

        return type_rows(result, ColumnTypes.parse(self.types), attempt.warn)

    def _for_xcom(self, result: dict[str, Any]) -> dict[str, Any]:
        """Return the result with as many rows as may go to XCom."""
        from airflow_provider_platform.files.xcom_size import fit_queries, xcom_bytes

        most = xcom_bytes(self.max_xcom_bytes, in_file=self.output_path is not None)
        queries = fit_queries(result["queries"], most)
        pairs = zip(queries, result["queries"], strict=True)
        for number, (query, before) in enumerate(pairs, start=1):
            if query is not before:
                self.log.warning(
                    "XCom has only the first %s of %s rows of query %s, because the limit for "
                    "the rows of all queries is %s bytes (max_xcom_bytes).",
                    len(query["rows"]),
                    query["total_rows"],
                    _query_name(number, query),
                    most,
                )
        return {**result, "queries": queries}

    def store_result_link(
        self, context: Context, config: PlatformConfig, result: Any, **ids: Any
    ) -> None:
        if path := _main_file(result):  # the thread's link is known since the run is
            self.store_link(context, config, path=path, **ids)

    def _question(self, ids: Ids) -> str | None:
        """Return the prompt that was asked; None if the template or the function now gives another
        one."""
        from airflow_provider_platform.resources.chat.request import input_digest

        prompt = str(self.prompt)
        return prompt if input_digest(prompt) == ids["input_sha256"] else None

    def _cut(self, query: dict[str, Any], name: str, config: PlatformConfig) -> str:
        """Return the log line about a query with missing rows: how to get all rows with this
        connection."""
        place = "result" if self.output_path is None else "file"
        kept = f"The {place} has {len(query['rows'])} of {query['total_rows']} rows of query {name}"
        fewer = len(query["rows"]) < query["sent_rows"]
        more = f" Or raise max_rows: the chat sent {query['sent_rows']} rows." if fewer else ""
        return f"{kept}. {_way_to_all_rows(config)}{more}"


def _user_of(identity: dict[str, str]) -> str | None:
    """Return the external or internal id of the user who asked."""
    return next(iter(identity.values()), None)


def _query_name(number: int, query: dict[str, Any]) -> str:
    """Return the title of a query in quotation marks, or its number (from 1) if it has no title."""
    title = query["title"]
    return repr(quote_service(title)) if title else f"{number} (no title)"


def _way_to_all_rows(config: PlatformConfig) -> str:
    """Return how this connection can read all rows of an agent's query, or which settings it lacks.

    The data API needs a token: the chat's service token, or a token from the management API. The
    address of the data API is in the connection, or comes from the management API.
    """
    managed = config.management_url is not None and config.deployment_id is not None
    if config.chat_service_token is not None and (managed or config.data_api_url is not None):
        return "For all rows set output_path and all_rows=True."
    if managed:
        return (
            'For all rows set output_path, all_rows=True and all_rows_as="connection", or run the '
            "query's SQL with PlatformHook.run_sql. Both ways use the permissions of the "
            "connection, and these may be wider than the permissions of the user."
        )
    missing = "deployment_id" if config.management_url else "host, password and deployment_id"
    return (
        "This connection cannot read all rows, because it has no access to the data API. Set "
        f"{missing} in the connection."
    )


def _main_file(result: dict[str, Any]) -> str | None:
    """Return the file of an answer that a person most likely wants to open: its first chart, else
    its first rows."""
    queries = result["queries"]
    charts = [path for query in queries for path in query.get("chart_paths", ())]
    rows = [query["path"] for query in queries if query.get("path")]
    file: str | None = next(iter([*charts, *rows]), result.get("manifest"))
    return file


def add_usage(
    store: Any, counters: TryCounters, ids: Ids, usage: dict[str, Any] | None
) -> dict[str, Any]:
    """Store the usage of the run with these ids, None if it is unknown. Return the sum of all runs
    since the task was last cleared. `counters` are those of this try.

    Each run has a key of its own, so that a retry that re-attaches to a run does not count the run
    twice.
    """
    from airflow_provider_platform.resources.chat.result import total_usage

    stored = store.get(USAGE_KEY) if store is not None else None
    runs: dict[str, dict[str, Any]] = {}
    if stored is not None and counters.is_retry_of(TryCounters(**stored["counters"])):
        runs = stored["runs"]
    if usage:
        runs = {**runs, f"{ids['message_id']} {ids['submitted_at']}": usage}
        if store is not None:
            store.set(USAGE_KEY, {"counters": asdict(counters), "runs": runs})
    return total_usage(runs.values())
