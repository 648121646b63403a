"""`PlatformQueryOperator`: run SQL over the data API; its rows go to a file or to XCom."""

from __future__ import annotations

import uuid
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, get_args

from airflow_provider_platform.client import argument_rules as arguments
from airflow_provider_platform.client.choices import MAX_ROWS, QUERY_TIMEOUT, CacheMode, OnTruncated
from airflow_provider_platform.client.errors import (
    ResultTruncatedError,
    from_payload,
)
from airflow_provider_platform.links import BranchLink, FileLink, all_links
from airflow_provider_platform.operators._base import (
    BACKSTOP_SECONDS,
    DeploymentOperator,
    ShortTraceback,
    default_deferrable,
    earliest_deadline,
)
from airflow_provider_platform.operators._output_arguments import (
    column_types,
    file_fits_its_name,
    optional_format,
    optional_options,
    optional_output_place,
    output_place_of,
    planned_output,
    report_to_outlets,
    respect_existing,
    skip_empty,
    written_by,
    written_files,
)

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping, Sequence

    from airflow_provider_platform._airflow import Context, ObjectStoragePath
    from airflow_provider_platform.client.argument_rules import Rule
    from airflow_provider_platform.files.options import Output
    from airflow_provider_platform.files.save import SavedRows
    from airflow_provider_platform.hooks.platform import PlatformHook
    from airflow_provider_platform.operators._base import Checks
    from airflow_provider_platform.resources.sql.response import SqlRows

LEAST_SECONDS = 60.0
"""What the worker has for a query whose first row the trigger has seen, however late it is."""


def one_query(name: str, sql: str) -> str:
    """Return one query. Raises PlatformInputError. This loads sqlglot, so only a running task
    calls it, never a DAG file."""
    from airflow_provider_platform.resources.sql.statements import why_not_a_query

    if (problem := why_not_a_query(sql)) is not None:
        raise arguments.refuse(name, f"must be one query; {problem}")
    return sql


def sql_parameters(name: str, value: Any) -> Any:
    """Return the values of a query's placeholders: a dict or a list, also from a JSON string; None
    if there are none. Raises PlatformInputError."""
    parsed = arguments.optional(value)
    if isinstance(parsed, str):
        read = arguments.sequence if parsed.lstrip().startswith("[") else arguments.mapping
        return read(name, parsed)
    return parsed


def pages_have_rows(page_rows: int | None, page_by: list[str] | None) -> None:
    """A rule: `page_rows` needs `page_by`. Raises ValueError."""
    if page_rows is not None and page_by is None:
        raise ValueError("page_rows needs page_by, which names the key columns of the pages")


class PlatformQueryOperator(DeploymentOperator):
    """Run SQL over the data API: first rows go to XCom and, with `output_path`, all rows to a file.

    Use it if you know the SQL, to write all rows to a storage or to decide by a few rows. For a
    question in words, use `PlatformChatOperator`.

    Returns `{"columns": [{"name", "type"}], "row_count": int, "truncated": bool, "rows": [[...]],
    "path": str | None, "format": str | None, "bytes": int | None}`. `rows` are the first
    `max_rows`, with values of their types: a Decimal as a string, times in ISO 8601. `truncated`
    says that rows are missing, or may be missing, because the service did not send them. A retry
    runs the query again and overwrites its file (see `on_existing` on the page Files).

    :param sql: the query
    :param parameters: values of the SQL's placeholders: a list for `%s`, or a dict for `%(name)s`;
        with parameters, `%%` is a percent sign. Each value becomes a safely quoted literal of its
        type: str, int, float, Decimal, bool, None, date, datetime (in `timezone`), UUID, or
        after `IN` a list of these values without None.
    :param output_path: the file to write: a local path, or a URL of a storage that Airflow knows,
        such as `s3://my_conn@bucket/rows.parquet`. Needs the extra `files`. Files are written
        atomically. Each index of a mapped task needs its own path, for example with `{{
        ti.map_index }}` in the name
    :param output_format: `parquet`, `csv` or `jsonl`. By default the extension of the path decides:
        `.parquet`, `.csv`, `.tsv`, `.jsonl`, `.ndjson`; all but `.parquet` can end in `.gz` or
        `.zst`, which compress the file. A path without an extension is Parquet. A format that
        contradicts the extension is an error.
    :param output_options: how the file is written, such as `{"delimiter": ";", "csv_safe": True}`:
        see the page Files. With `partition_by` or `max_rows_per_file` the path is a folder for
        several files, and the result has `files` and `file_count` too. With `on_existing="skip"` or
        `on_empty="skip"` the task may be skipped
    :param max_rows: rows that go to XCom
    :param max_xcom_bytes: the largest size of these rows in XCom, in bytes of JSON: XCom has the
        first rows that fit (default 262,144, and 16,384 if there is a file)
    :param types: `service` converts values to the types of their columns; if a value does not fit,
        the whole column is returned as strings, with a warning and a `note` in the result. `strict`
        fails instead; `text` returns all values as strings, and null as None. A dict sets the types
        of single columns, `{"at": "timestamp", "price": "decimal(12, 2)"}`: int64, double, decimal,
        boolean, date, timestamp, string. Its key `*` sets the mode of the columns that the dict
        does not name. `{"*": "strict"}` also makes the types in the dict strict
    :param on_truncated: `warn` or `fail` if rows may be missing: see the page Run SQL
    :param default_row_limit: the most rows that the deployment returns for a query without a LIMIT
        (default: the connection's). If neither the argument nor the connection has a value, a
        result with 10,000 or another round number of rows counts as truncated: see the page Run
        SQL
    :param max_row_limit: the most rows that the deployment returns for a query with a LIMIT
        (default: the connection's). If neither the argument nor the connection has a value, a
        result with 50,000 rows counts as truncated, and so does one with another round number of
        rows that is not the query's own LIMIT
    :param page_by: names of columns that together identify each row, such as `["id"]`. The task
        reads all rows, in pages, even if the service limits the rows of one result. The query must
        be one SELECT without ORDER BY and LIMIT (see the page Run SQL); a query that cannot be read
        in pages is refused
    :param page_rows: rows of a page (default: `max_row_limit`, else 50,000)
    :param branch_name: a development branch to run the query on; the task fails if a template or an
        output of a task gives no name
    :param timezone: the time zone of the times in the result
    :param cache: `stale-if-slow`, `stale-while-revalidate`, `must-revalidate` or `no-cache`
    :param deferrable: wait for the first row in the triggerer (default: `[operators]
        default_deferrable`)
    :param timeout: seconds (or a timedelta) until the first row (of each page); an
        earlier `execution_timeout` counts too
    """

    operator_extra_links = all_links(FileLink, BranchLink)
    linked_result: ClassVar[dict[str, str]] = {"path": "path"}

    template_fields_renderers: ClassVar[dict[str, str]] = {"sql": "sql"}
    template_ext: Sequence[str] = (".sql",)
    checks: ClassVar[Checks] = {
        "sql": arguments.text,
        "parameters": sql_parameters,
        "output_path": optional_output_place,
        "output_format": optional_format,
        "output_options": optional_options,
        "max_rows": partial(arguments.whole_number, minimum=0),
        "max_xcom_bytes": partial(arguments.or_none(arguments.whole_number), minimum=0),
        "types": column_types,
        "on_truncated": partial(arguments.choice, choices=get_args(OnTruncated)),
        "default_row_limit": arguments.optional_id,
        "max_row_limit": arguments.optional_id,
        "page_by": arguments.names,
        "page_rows": partial(arguments.or_none(arguments.whole_number), minimum=2),
        "branch_name": arguments.optional_text,
        "timezone": arguments.optional_text,
        "cache": partial(arguments.optional_choice, choices=get_args(CacheMode)),
        "deferrable": arguments.boolean,
        "timeout": arguments.seconds,
    }
    rules: ClassVar[Sequence[Rule]] = (
        (("output_path", "output_format", "output_options"), file_fits_its_name),
        (("page_rows", "page_by"), pages_have_rows),
    )

    def __init__(
        self,
        *,
        sql: str,
        parameters: Mapping[str, Any] | Sequence[Any] | None = None,
        output_path: str | os.PathLike[str] | ObjectStoragePath | None = None,
        output_format: str | None = None,
        output_options: dict[str, Any] | None = None,
        max_rows: int | str = MAX_ROWS,
        max_xcom_bytes: int | str | None = None,
        types: str | dict[str, str] = "service",
        on_truncated: str = "warn",
        default_row_limit: int | str | None = None,
        max_row_limit: int | str | None = None,
        page_by: Sequence[str] | str | None = None,
        page_rows: int | str | None = None,
        branch_name: str | None = None,
        timezone: str | None = None,
        cache: str | None = None,
        deferrable: bool | None = None,
        timeout: float | timedelta = QUERY_TIMEOUT,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.sql = sql
        self.parameters = parameters
        self.output_path: Any = output_path
        self.output_format: Any = output_format
        self.output_options: Any = output_options
        self.max_rows = max_rows
        self.max_xcom_bytes: Any = max_xcom_bytes
        self.types: Any = types
        self.on_truncated = on_truncated
        self.default_row_limit: Any = default_row_limit
        self.max_row_limit: Any = max_row_limit
        self.page_by: Any = page_by
        self.page_rows: Any = page_rows
        self.branch_name = branch_name
        self.timezone = timezone
        self.cache: Any = cache
        self.deferrable = default_deferrable(deferrable)
        self.timeout: Any = timeout
        self._hook: PlatformHook | None = None
        self.validate_known_arguments()

    def validate_known_arguments(self) -> None:
        """Check every known argument, and whether each placeholder has a value. Raises
        PlatformInputError."""
        super().validate_known_arguments()
        if all(map(self.is_known, (self.sql, self.parameters, self.timezone))):
            with self.named_errors():
                self._bound_sql()

    def execute(self, context: Context) -> dict[str, Any]:
        """Wait for the first row, on the worker or in the triggerer; then read the whole result."""
        with ShortTraceback(), self.opened(context) as hook:
            self._hook = hook
            target = self._target(context)
            deadline = self._deadline(hook, context)
            with self.named_errors():
                sql = self._checked_sql()
            if self.deferrable:
                self._wait_in_triggerer(hook, sql, deadline)
            return self._read(context, hook, sql, target, deadline)

    def execute_complete(
        self, context: Context, event: dict[str, Any], run: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Read the result whose first row the trigger has seen. `run` names the wait that the task
        deferred with. An event of another wait (Airflow can reuse the ids of triggers) is
        ignored."""
        reported = event.get("run") or {}
        waited = run or reported
        with ShortTraceback(), self.opened(context) as hook:
            self._hook = hook
            now = hook.open_client().clock()
            deadline = float(waited.get("deadline") or now)
            # The SQL that the trigger asked for: rendered again, it may be another text.
            sql = waited.get("sql") or self._bound_sql()
            if reported.get("wait_id") != waited.get("wait_id"):
                self.log.warning(
                    "Ignoring the event of another trigger (Airflow can reuse the ids of "
                    "triggers). This task continues to wait."
                )
                self._wait_in_triggerer(hook, sql, deadline)
            if event["status"] == "error":
                error = from_payload(event["error"])
                from airflow_provider_platform.hooks.lineage import report_queries
                from airflow_provider_platform.resources.sql.query import FailedSqlLog

                # The trigger's log may be out of reach: this is the log of the try that failed.
                failed = FailedSqlLog(sql)
                failed.redact = hook.open_client().secrets.redact_text
                failed(error)
                report_queries(self.hook(), [failed.redact(sql)])
                raise error
            until = max(deadline, now + LEAST_SECONDS)
            return self._read(context, hook, sql, self._target(context), until)

    def resume_execution(
        self, next_method: str, next_kwargs: dict[str, Any] | None, context: Context
    ) -> Any:
        """Continue after the wait."""
        with ShortTraceback():
            return super().resume_execution(next_method, next_kwargs, context)

    def on_kill(self) -> None:
        """Stop reading, and delete the unfinished file."""
        if self._hook is not None:
            self._hook.open_client().interrupt()

    def _target(self, context: Context) -> ObjectStoragePath | None:
        """Return the place to write to, checked before anything is sent."""
        if self.output_path is None:
            return None
        target = output_place_of(self.output_path, self._output())
        respect_existing(context, target, self._output())
        return target

    def _output(self) -> Output:
        """Return how the file is written."""
        return planned_output(self.output_path, self.output_format, self.output_options)

    def _deadline(self, hook: PlatformHook, context: Context) -> float:
        """Return when the first row must be there (Unix time): after `timeout`, or before this
        try's `execution_timeout`, whichever comes first."""
        now = hook.open_client().clock()
        deadline = now + float(self.timeout)
        return earliest_deadline(deadline, self.execution_timeout, context, now=now)

    def _bound_sql(self) -> str:
        """Return the query with the values of its parameters. Raises PlatformInputError."""
        from airflow_provider_platform.resources.sql.parameters import bind_parameters

        parameters = sql_parameters("parameters", self.parameters)
        return bind_parameters(self.sql, parameters, arguments.optional(self.timezone))

    def _checked_sql(self) -> str:
        """Return the bound query. Raises PlatformInputError if it is not one query, or with
        `page_by` if it cannot be read in pages."""
        sql = one_query("sql", self._bound_sql())
        if self.page_by is not None:
            from airflow_provider_platform.resources.sql.page_by import PagedQuery

            PagedQuery.build(sql, self.page_by)
        return sql

    def _wait_in_triggerer(self, hook: PlatformHook, sql: str, deadline: float) -> None:
        from airflow_provider_platform.triggers import PlatformQueryTrigger

        run = {"wait_id": uuid.uuid4().hex, "deadline": deadline, "sql": sql}
        if self.page_by is not None:
            run["first_page"] = self._first_page(hook, sql)
        left = max(0.0, deadline - hook.open_client().clock())
        self.defer(
            trigger=PlatformQueryTrigger(
                platform_conn_id=self.platform_conn_id,
                run=run,
                deployment_id=hook.resolve_deployment_id(self.deployment_id),
                branch_name=self.branch_name,
                timezone=self.timezone,
                cache=self.cache,
                deadline=deadline,
            ),
            method_name="execute_complete",
            kwargs={"run": run},
            timeout=timedelta(seconds=left + BACKSTOP_SECONDS + hook.config.stream_idle_timeout),
        )

    def _first_page(self, hook: PlatformHook, sql: str) -> str:
        """Return the SQL of the first page, which the worker requests again."""
        from airflow_provider_platform.resources.sql.page_by import PagedQuery
        from airflow_provider_platform.resources.sql.statements import page_rows

        rows = page_rows(hook.config, self.page_rows, self.max_row_limit)
        return PagedQuery.build(sql, self.page_by, rows=rows).page()

    def _read(
        self,
        context: Context,
        hook: PlatformHook,
        sql: str,
        target: ObjectStoragePath | None,
        deadline: float,
    ) -> dict[str, Any]:
        from airflow_provider_platform.files.save import save_rows
        from airflow_provider_platform.files.task_paths import writer_id

        if self.page_by is not None:  # each page may wait as long as the first one
            deadline = max(deadline, self._deadline(hook, context))
        output = self._output()
        secrets = hook.open_client().secrets
        rows = hook.run_sql(
            sql,
            deployment_id=self.deployment_id,
            branch_name=self.branch_name,
            timezone=self.timezone,
            cache=self.cache,
            timeout=deadline - hook.open_client().clock(),
            default_row_limit=self.default_row_limit,
            max_row_limit=self.max_row_limit,
            page_by=self.page_by,
            page_rows=self.page_rows,
        )
        with rows:
            saved = save_rows(
                rows.columns,
                self._checked_pieces(context, rows, target),
                path=target,
                output=output,
                writer=writer_id(**written_by(context)),
                types=self.types,
                max_rows=int(self.max_rows),
            )
        if saved.renaming is not None:
            self.log.warning("%s", saved.renaming)
        truncated = bool(rows.truncated)
        facts = {"columns": saved.columns, "row_count": saved.row_count, "truncated": truncated}
        file = written_files(saved, output)
        if saved.path is not None:
            about = {**facts, **file, "sha256": saved.sha256, "sql": sql}
            report_to_outlets(context, self.outlets, secrets.redact_data(about))
        result = secrets.redact_data({**facts, "rows": self._xcom_rows(saved), **file})
        self._log_result(saved, result, secrets.redact_data(saved.warnings))
        skip_empty(saved, output if target else None)
        self.store_result_link(context, hook.config, result)
        return result

    def _checked_pieces(
        self, context: Context, rows: SqlRows, target: ObjectStoragePath | None
    ) -> Iterator[list[list[Any]]]:
        """Yield the rows. If the result may be truncated, log it, or raise before the file is
        complete."""
        yield from rows.pieces()
        if (warning := rows.why_truncated) is not None:
            if self.on_truncated == "fail":
                raise ResultTruncatedError(warning)
            self.log.warning("%s", warning)
        if target is not None:  # somebody may have written while the query ran
            respect_existing(context, target, self._output())

    def _xcom_rows(self, saved: SavedRows) -> list[list[Any]]:
        """Return the rows that go to XCom; log a warning if bytes, not `max_rows`, limit them."""
        from airflow_provider_platform.files.xcom_size import rows_that_fit, xcom_bytes

        most = xcom_bytes(self.max_xcom_bytes, in_file=saved.path is not None)
        rows = rows_that_fit(saved.first_rows, most)
        if len(rows) < len(saved.first_rows):
            self.log.warning(
                "XCom has only the first %s of %s rows, because the limit is %s bytes "
                "(max_xcom_bytes).%s",
                len(rows),
                saved.row_count,
                most,
                " The file has all rows." if saved.path else "",
            )
        return rows

    def _log_result(self, saved: SavedRows, shown: dict[str, Any], warnings: list[str]) -> None:
        from airflow_provider_platform.messages.message import log_lines

        if saved.path is None:
            self.log.info("Read %s rows", saved.row_count)
        else:
            self.log.info(
                "Wrote %s rows (%s bytes) to %s", saved.row_count, saved.bytes, saved.path
            )
        for warning in warnings:
            self.log.warning("%s", warning)
        for line in log_lines({"queries": [shown]}):
            self.log.info("%s", line)
