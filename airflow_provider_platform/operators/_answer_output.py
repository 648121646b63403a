"""The files that a chat task writes of its answer: its arguments, and the rows that are read again.

The author says which files, and whether the files have all rows of the queries.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from airflow_provider_platform.client import argument_rules as arguments
from airflow_provider_platform.client.choices import QUERY_TIMEOUT, ChartFormat
from airflow_provider_platform.client.errors import PlatformInputError
from airflow_provider_platform.operators._output_arguments import (
    column_types,
    folder_fits_its_files,
    optional_folder,
    optional_format,
    optional_options,
    planned_output,
    report_to_outlets,
    storage_path,
    written_by,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pydantic import SecretStr

    from airflow_provider_platform._airflow import Context, ObjectStoragePath
    from airflow_provider_platform.client.argument_rules import Rule
    from airflow_provider_platform.client.config import PlatformConfig
    from airflow_provider_platform.client.platform_client import PlatformClient
    from airflow_provider_platform.files.options import Output
    from airflow_provider_platform.operators._base import Checks
    from airflow_provider_platform.resources.run_log import Log
    from airflow_provider_platform.resources.sql.response import SqlRows


CHART_FORMATS = get_args(ChartFormat)


def _pictures(name: str, value: Any) -> tuple[str, ...]:
    """Return formats of charts: a list, or one format. Raises PlatformInputError."""
    chosen = [value] if isinstance(value, str) and value.strip() in CHART_FORMATS else value
    formats = arguments.sequence(name, chosen) or []
    return tuple(
        dict.fromkeys(arguments.choice(name, str(item), CHART_FORMATS) for item in formats)
    )


@arguments.or_none
def _fonts_folder(name: str, value: Any) -> str:
    """Return a local folder of fonts, or None. Raises PlatformInputError."""
    return str(optional_folder(name, value))


def _needs_folder(*, output_path: Any, **written: Any) -> None:
    """A rule: arguments about files need `output_path`."""
    for name, argument in written.items():
        if argument and output_path is None:
            raise ValueError(f"{name} needs output_path, a folder to write to")


ANSWER_CHECKS: Checks = {
    "output_path": optional_folder,
    "output_format": optional_format,
    "output_options": optional_options,
    "all_rows": arguments.boolean,
    "all_rows_as": partial(arguments.choice, choices=("user", "connection")),
    "charts": _pictures,
    "chart_fonts": _fonts_folder,
    "on_chart_error": partial(arguments.choice, choices=("warn", "fail")),
    "types": column_types,
}
ANSWER_RULES: tuple[Rule, ...] = (
    (("all_rows", "output_path"), _needs_folder),
    (("charts", "output_path"), _needs_folder),
    (("output_path", "output_format", "output_options"), folder_fits_its_files),
)


@dataclass(frozen=True)
class AnswerOutput:
    """The files that one task writes of its answer: the checked arguments of `ANSWER_CHECKS`, with
    an `output_path`."""

    log: Log
    outlets: Sequence[Any]
    output_path: Any
    output_format: Any
    output_options: Any
    all_rows: bool
    all_rows_as: str
    charts: tuple[str, ...]
    chart_fonts: str | None
    on_chart_error: str
    types: Any

    @classmethod
    def of(cls, task: Any) -> AnswerOutput:
        """Return the output of a task with these arguments."""
        names = {field.name for field in fields(cls)}
        return cls(**{name: getattr(task, name) for name in names})

    def check(
        self, context: Context, config: PlatformConfig, branch_name: str | None = None
    ) -> None:
        """Check that the files can be written, before the agent is asked. Raises
        PlatformInputError, ResultWriteError."""
        from airflow_provider_platform.files.options import check_engine
        from airflow_provider_platform.files.whole_files import check_place
        from airflow_provider_platform.resources.branches import branch_address_beside

        check_engine()
        if self.charts and find_spec("vl_convert") is None:
            raise PlatformInputError(
                "Nothing was sent: charts need vl-convert-python. Install "
                "airflow-provider-platform[charts].",
                field="charts",
            )
        if self.charts and self.chart_fonts is not None and not Path(self.chart_fonts).is_dir():
            raise PlatformInputError(
                f"Nothing was sent: chart_fonts {self.chart_fonts} is not a folder on this worker.",
                field="chart_fonts",
            )
        check_place("output_path", self._folder(context) / "manifest.json")
        if self.all_rows:
            token = self._reading_token(config)
            if token is None or config.data_api_url is None:
                config.require_management_url()
                config.resolve_deployment_id()
            elif branch_name is not None and config.management_url is not None:
                config.resolve_deployment_id()
            elif branch_name is not None:
                branch_address_beside(config.data_api_url, branch_name)

    def write(
        self,
        context: Context,
        client: PlatformClient,
        result: dict[str, Any],
        *,
        question: str | None,
        max_rows: int,
        branch_name: str | None,
        warn: Callable[[str], None],
    ) -> dict[str, Any]:
        """Write the files, and return the result with their paths."""
        from airflow_provider_platform.files.answer_files import AnswerFiles, write_answer
        from airflow_provider_platform.files.types import ColumnTypes

        folder = self._folder(context)
        wanted = AnswerFiles(
            folder=folder,
            output=self._output(),
            max_rows=max_rows,
            charts=self.charts,
            chart_fonts=self.chart_fonts,
            fail_on_chart_error=self.on_chart_error == "fail",
            run=(lambda sql: self._rows(client, sql, branch_name)) if self.all_rows else None,
            types=ColumnTypes.parse(self.types),
            warn=warn,
        )
        asked = None if question is None else client.secrets.redact_data(question)
        about = {"question": asked, **written_by(context)}
        written, manifest = write_answer(result, wanted, about)
        self.log.info("Wrote files to %s (queries: %s)", folder, len(written["queries"]))
        report_to_outlets(context, self.outlets, _facts(manifest, written["manifest"]))
        return written

    def _output(self) -> Output:
        """Return how the file of each query is written."""
        return planned_output(None, self.output_format, self.output_options)

    def _folder(self, context: Context) -> ObjectStoragePath:
        """Return the folder of this task in this run."""
        from airflow_provider_platform.files.task_paths import task_folder

        return storage_path("output_path", self.output_path) / task_folder(**written_by(context))

    def _rows(self, client: PlatformClient, sql: str, branch_name: str | None) -> SqlRows:
        """Return all rows of a query of the agent, read with the permissions that
        `all_rows_as` names."""
        from airflow_provider_platform.resources.sql.query import FailedSqlLog, SqlQuery, run_sql
        from airflow_provider_platform.resources.sql.response import SqlRows
        from airflow_provider_platform.resources.sql.statements import known_limits

        query = SqlQuery(
            sql,
            deployment_id=client.config.deployment_id,
            deadline=client.clock() + QUERY_TIMEOUT,
            branch_name=branch_name,
            token=self._reading_token(client.config),
        )
        limits = known_limits(client.config)
        failed = FailedSqlLog(sql)
        failed.redact = client.secrets.redact_text
        return SqlRows(
            lambda: client.events(lambda api: run_sql(api, query)),
            lambda row_count: limits.why_cut(sql, row_count),
            failed,
        )

    def _reading_token(self, config: PlatformConfig) -> SecretStr | None:
        """Return the token with which queries are run again; None for a token of the connection.
        Raises PlatformInputError if the connection's permissions could show the user more rows than
        the user may see."""
        if self.all_rows_as == "connection":
            return None
        if config.chat_service_token is None:
            raise PlatformInputError(
                "Nothing was sent: with Chat API key (chat_api_key), all_rows uses the "
                "permissions of the connection, not the permissions of the user in "
                "session_settings. Use Chat service token (chat_service_token), or set "
                'all_rows_as="connection" if you accept the connection\'s permissions.',
                field="all_rows_as",
            )
        return config.chat_service_token


def _facts(manifest: dict[str, Any], path: str) -> dict[str, Any]:
    """Return what the event of an asset reports about the files."""
    kept = ("title", "sql", "columns", "row_count", "truncated")
    return {
        "question": manifest["question"],
        "manifest": path,
        "queries": [
            {**{name: query[name] for name in kept}, **(query["file"] or {})}
            for query in manifest["queries"]
        ],
    }
