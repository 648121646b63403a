"""The files of an agent's answer: a file for each query, its charts, `answer.md`, `manifest.json`.

The manifest is written last, and the one of an earlier try is taken away first: where it stands,
all that it names is there and whole.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from airflow_provider_platform.charts import ChartError, ChartLimits, ChartRenderer
from airflow_provider_platform.client.choices import MAX_ROWS
from airflow_provider_platform.client.redaction import quote_service
from airflow_provider_platform.files.options import PARQUET, Output
from airflow_provider_platform.files.save import (
    SavedRows,
    named_as,
    rectangular,
    save_rows,
    warn_of_unknown_names,
)
from airflow_provider_platform.files.task_paths import query_name
from airflow_provider_platform.files.types import ColumnTypes
from airflow_provider_platform.files.whole_files import OutputFile, write_whole, writing
from airflow_provider_platform.messages.markdown import to_markdown
from airflow_provider_platform.messages.message import message_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

ANSWER, MANIFEST = "answer.md", "manifest.json"


class Rows(Protocol):
    """All rows of a query, run again."""

    @property
    def columns(self) -> list[dict[str, str]]:
        """`{"name", "type"}` each."""

    @property
    def why_truncated(self) -> str | None:
        """Why some may be missing, None where none are."""

    def pieces(self) -> Iterable[list[list[Any]]]:
        """The rows as they come."""

    def close(self) -> None:
        """Stop reading."""


@dataclass(frozen=True)
class AnswerFiles:
    """What is written of an answer, and how: `folder` is a path object; `run` gives all rows of an
    SQL text, None where the rows that the chat has sent are meant."""

    folder: Any
    output: Output = PARQUET
    max_rows: int = MAX_ROWS
    types: ColumnTypes = field(default_factory=ColumnTypes)
    charts: tuple[str, ...] = ()
    chart_fonts: str | None = None
    """A folder of fonts for the charts."""
    fail_on_chart_error: bool = False
    run: Callable[[str], Rows] | None = None
    warn: Callable[[str], None] = lambda _: None


@dataclass
class _Written:
    """What there is of one query."""

    saved: SavedRows | None = None
    why_truncated: str | None = None
    chart_columns: list[dict[str, str]] = field(default_factory=list)
    """As the service names them: the chart's specification refers to these names."""
    chart_rows: list[list[Any]] = field(default_factory=list)
    charts: list[dict[str, Any]] = field(default_factory=list)
    chart_error: str | None = None
    chart_notes: list[str] = field(default_factory=list)


def write_answer(
    result: dict[str, Any], wanted: AnswerFiles, about: dict[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Write the files of a chat's result; returns the result with `folder` and `manifest`, and
    with `path`, `chart_paths` and `row_count` of each query, and what the manifest holds.

    `about` begins the manifest: the question and the task. Raises ResultWriteError, ChartError
    where it is asked for, and what reading rows raises.
    """
    result = rectangular(result)
    left = _take_manifest_away(wanted.folder)
    queries, described = [], []
    with ChartRenderer(fonts=wanted.chart_fonts) as renderer:
        for number, query in enumerate(result["queries"], start=1):
            written = _write_query(number, query, wanted, renderer)
            queries.append(_with_files(query, written, wanted))
            described.append(_described(number, query, written, wanted))
    warn_of_unknown_names([query["columns"] for query in queries], wanted.types, wanted.warn)
    title = quote_service(about.get("question") or "Answer")
    message = message_of({**result, "queries": queries}, title=title)
    pictures = [_picture(query["charts"]) for query in described]
    beside = {position: name for position, name in enumerate(pictures) if name is not None}
    answer = to_markdown(message, beside).encode("utf-8", "replace")
    for query in queries:
        query["rows"] = query["rows"][: wanted.max_rows]
    manifest = {
        **about,
        **{name: result[name] for name in ("chat_id", "message_id", "answer", "usage")},
        "answer_file": _facts(ANSWER, wanted.folder / ANSWER, "md", answer),
        "queries": described,
    }
    document = json.dumps(manifest, ensure_ascii=False, indent=2).encode("utf-8", "replace")
    path = wanted.folder / MANIFEST
    write_whole(path, document + b"\n")
    _remove_others(wanted.folder, left, manifest)
    places = {"folder": str(wanted.folder), "manifest": str(path)}
    return {**result, "queries": queries, **places}, manifest


def _write_query(
    number: int, query: dict[str, Any], wanted: AnswerFiles, renderer: ChartRenderer
) -> _Written:
    if query["error"] is not None or not (query["columns"] or wanted.run):
        return _Written()
    path = wanted.folder / query_name(number, wanted.output.ending)
    written = _save(query, path, wanted)
    assert written.saved is not None  # noqa: S101 - for the type checker
    for warning in written.saved.warnings:
        wanted.warn(f"Query {number}: {warning}")
    missing = query["total_rows"] - written.saved.row_count
    if wanted.run and missing:
        wanted.warn(
            f"Query {number}: the chat reported {query['total_rows']} rows, but the data API "
            f"returned {written.saved.row_count}. The file has the rows of the data API. The data "
            "may have changed since the chat."
        )
    for message in (written.why_truncated, written.saved.renaming):
        if message is not None:
            wanted.warn(f"Query {number}: {message}")
    if wanted.charts and query["chart"] is not None:
        _draw(number, query, written, wanted, renderer)
    written.chart_error = query.get("chart_error") or written.chart_error
    if wanted.charts and wanted.fail_on_chart_error and query.get("chart_error"):
        raise ChartError(query["chart_error"])
    return written


def _save(query: dict[str, Any], path: Any, wanted: AnswerFiles) -> _Written:
    written = _Written()
    options: Any = {"path": path, "output": wanted.output}
    if wanted.run is None:
        options |= {
            "max_rows": len(query["rows"]),
            "types": wanted.types.only(query["columns"]),
        }
        written.saved = save_rows(query["columns"], [query["rows"]], **options)
        written.chart_rows = written.saved.first_rows
        written.chart_columns = named_as(query["columns"], written.saved)
        return written
    drawn = ChartLimits().rows + 1 if wanted.charts and query["chart"] is not None else 0
    rows = wanted.run(query["sql"])
    try:
        options |= {
            "max_rows": max(wanted.max_rows, drawn),
            "types": wanted.types.only(rows.columns),
        }
        saved = save_rows(rows.columns, rows.pieces(), **options)
        written.why_truncated = rows.why_truncated
    finally:
        rows.close()
    written.saved, written.chart_rows = saved, saved.first_rows
    written.chart_columns = named_as(rows.columns, saved)
    saved.first_rows = saved.first_rows[: wanted.max_rows]
    return written


def _draw(
    number: int,
    query: dict[str, Any],
    written: _Written,
    wanted: AnswerFiles,
    renderer: ChartRenderer,
) -> None:
    """Draw the chart of a query from the rows of its file."""
    assert written.saved is not None  # noqa: S101 - for the type checker
    rows, total = written.saved.row_count, query["total_rows"]
    try:
        if wanted.run is None and rows < total:
            raise ChartError(
                f"The chart needs all {total} rows, but the chat sent only {rows}. Use "
                "all_rows=True."
            )
        pictures = renderer.render(
            query["chart"], written.chart_columns, written.chart_rows, wanted.charts
        )
    except ChartError as error:
        if wanted.fail_on_chart_error:
            raise
        written.chart_error = error.message
        wanted.warn(f"The chart of query {number} was not drawn: {error.message}")
        return
    written.chart_notes = list(pictures.notes)
    for note in pictures.notes:
        wanted.warn(f"The chart of query {number}: {note}")
    for ending, data in pictures.items():
        name = query_name(number, ending)
        written.charts.append(_facts(name, wanted.folder / name, ending, data))


def _facts(name: str, path: Any, file_format: str, data: bytes) -> dict[str, Any]:
    """Write a file, and tell of it."""
    return _file(name, path, file_format, write_whole(path, data))


def _file(name: str, path: Any, file_format: str, file: OutputFile | SavedRows) -> dict[str, Any]:
    return {
        "name": name,
        "path": str(path),
        "format": file_format,
        "bytes": file.bytes,
        "sha256": file.sha256,
    }


def _picture(charts: list[dict[str, Any]]) -> str | None:
    """The name of the file that a document beside it can show; None without one."""
    names = {chart["format"]: str(chart["name"]) for chart in charts}
    return names.get("png") or names.get("svg")


def _with_files(query: dict[str, Any], written: _Written, wanted: AnswerFiles) -> dict[str, Any]:
    """The query with what was written of it."""
    saved = written.saved
    files: dict[str, Any] = {
        "path": saved.path if saved else None,
        "chart_paths": [chart["path"] for chart in written.charts],
        "row_count": saved.row_count if saved else None,
    }
    if saved is not None:
        files |= {"columns": saved.columns, "rows": saved.first_rows}
        files["truncated"] = _lacks_rows(query, written, wanted)
    return {**query, **files}


def _lacks_rows(query: dict[str, Any], written: _Written, wanted: AnswerFiles) -> bool:
    """Whether rows of the query are missing, or may be missing, in its file."""
    if written.saved is None or wanted.run is None:
        return bool(query["truncated"])
    return written.why_truncated is not None


def _described(
    number: int, query: dict[str, Any], written: _Written, wanted: AnswerFiles
) -> dict[str, Any]:
    """The query as the manifest has it."""
    saved = written.saved
    name = query_name(number, wanted.output.ending)
    return {
        "number": number,
        **{key: query[key] for key in ("title", "description", "sql", "uuid", "error")},
        "columns": saved.columns if saved else query["columns"],
        "types": wanted.types.mode,
        "rows_from": "chat" if wanted.run is None else "data API",
        "total_rows": query["total_rows"],
        "row_count": saved.row_count if saved else None,
        "difference": saved.row_count - query["total_rows"] if saved else None,
        "truncated": _lacks_rows(query, written, wanted),
        "file": _file(name, saved.path, wanted.output.format, saved) if saved else None,
        "charts": written.charts,
        "chart_error": written.chart_error,
        "chart_notes": written.chart_notes,
    }


def _take_manifest_away(folder: Any) -> set[str]:
    """Names of the files of an earlier try; its manifest is removed."""
    path = folder / MANIFEST
    with writing(path):
        try:
            manifest = json.loads(path.read_bytes())
        except (FileNotFoundError, PermissionError):  # who may not list is not told more
            return set()
        except ValueError:
            manifest = {}
        path.unlink()
    try:
        return _names(manifest)
    except (KeyError, TypeError):
        return set()


def _remove_others(folder: Any, earlier: set[str], manifest: dict[str, Any]) -> None:
    """Remove what an earlier try has written and this one has not."""
    for name in earlier - _names(manifest):
        try:
            (folder / name).unlink()
        except OSError:
            continue


def _names(manifest: dict[str, Any]) -> set[str]:
    """Names of a manifest's files, those that are names of files in its folder."""
    files = [manifest["answer_file"]]
    for query in manifest["queries"]:
        files += [file for file in (query["file"], *query["charts"]) if file]
    names = {str(file["name"]) for file in files}
    return {name for name in names if "/" not in name and name.startswith(("query-", ANSWER))}
