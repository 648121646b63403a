"""What an operator writes: `output_path`, `output_format` and `output_options` as arguments."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, get_args

from airflow_provider_platform._airflow import loop_pass
from airflow_provider_platform.client.choices import RowFormat
from airflow_provider_platform.client.errors import PlatformInputError
from airflow_provider_platform.operators._base import arguments
from airflow_provider_platform.operators._files.storage_paths import output_target

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_platform._airflow import Context, ObjectStoragePath
    from airflow_provider_platform.files.options import Output
    from airflow_provider_platform.files.save import SavedRows

LISTED_FILES = 100
"""So many files a task's result lists."""
optional_format = partial(arguments.optional_choice, choices=get_args(RowFormat))


def optional_options(name: str, value: Any) -> dict[str, Any] | None:
    """Return the options of a file, or None; checked as soon as they are known. Raises
    PlatformInputError."""
    options = arguments.mapping(name, value)
    if options is not None and not arguments.is_template(options):
        from airflow_provider_platform.files.options import (
            output_options as check,
        )

        with arguments.within(name):
            check(options)
    return options


def planned_output(
    path: Any, output_format: str | None, output_options: dict[str, Any] | None
) -> Output:
    """Return how a path is written; None is a folder whose files get names of their own. Raises
    ValueError for a contradiction."""
    from airflow_provider_platform.files.options import (
        output_options as read_options,
    )
    from airflow_provider_platform.files.options import plan_output

    name = None if path is None else str(path)
    return plan_output(name, output_format, read_options(output_options))


def file_fits_its_name(*, output_path: Any, output_format: Any, output_options: Any) -> None:
    """A rule: path, format and options do not contradict each other."""
    if output_path is not None:
        planned_output(output_path, output_format, output_options)
    elif output_options:
        raise ValueError("output_options needs output_path, the file to write")


def folder_fits_its_files(*, output_path: Any, output_format: Any, output_options: Any) -> None:
    """A rule: format and options of the files in a folder do not contradict each other."""
    if output_options and output_path is None:
        raise ValueError("output_options needs output_path, a folder to write to")
    if output_options:
        planned = planned_output(None, output_format, output_options)
        what = (planned.is_folder, planned.on_existing, planned.on_empty)
        if what != (False, "overwrite", "write"):
            raise ValueError(
                "output_options of a chat may set only how a file is written, for example its "
                "delimiter and compression. For on_existing, on_empty, partitions and several "
                "files for one result, use PlatformQueryOperator"
            )


def written_by(context: Context) -> dict[str, Any]:
    """Return the task run that writes: DAG, run, task and map index, and in a loop its pass.
    Outside Airflow, as in a test of an operator, the strings are empty."""
    ti: Any = context.get("ti")
    nobody = {"dag_id": "", "run_id": "", "task_id": "", "map_index": -1}
    writer = {name: getattr(ti, name, value) for name, value in nobody.items()}
    in_pass = loop_pass(ti)
    return writer if in_pass is None else {**writer, "loop_pass": in_pass}


def output_place_of(path: Any, output: Output) -> ObjectStoragePath:
    """Return the path in its storage, checked before anything is sent. Raises PlatformInputError,
    ResultWriteError."""
    from airflow_provider_platform.files.options import check_engine

    check_engine()
    return output_target("output_path", path, inside="part" if output.is_folder else None)


def respect_existing(context: Context, place: ObjectStoragePath, output: Output) -> None:
    """Keep existing files if the options say so: raise AirflowSkipException or PlatformInputError.
    In a folder, the files of an earlier try of this task run do not count."""
    from airflow_provider_platform._airflow import AirflowSkipException
    from airflow_provider_platform.files.names import writer_id
    from airflow_provider_platform.files.save import exists

    if output.on_existing == "overwrite":
        return
    if not exists(place, output, writer_id(**written_by(context))):
        return
    verb = "already contains files" if output.is_folder else "already exists"
    if output.on_existing == "fail":
        raise PlatformInputError(
            f"Nothing was written: output_path {verb}, and output_options has on_existing='fail'. "
            "Remove the existing files, or write to another path.",
            where=place,
            field="output_path",
        )
    raise AirflowSkipException(
        f"output_path {verb}, and output_options has on_existing='skip'. ({place})"
    )


def skip_empty(saved: SavedRows, output: Output | None) -> None:
    """Raise AirflowSkipException if a result was not written because it has no rows."""
    if output is not None and saved.path is None:
        from airflow_provider_platform._airflow import AirflowSkipException

        raise AirflowSkipException(
            "Nothing was written: the result has no rows, and output_options has on_empty='skip'."
        )


def written_files(saved: SavedRows) -> dict[str, Any]:
    """Return the part of a task's result about its file, or about the files in its folder."""
    facts: dict[str, Any] = {"path": saved.path, "format": saved.format, "bytes": saved.bytes}
    if saved.files:
        facts |= {"file_count": len(saved.files), "files": saved.files[:LISTED_FILES]}
    return facts


def report_to_outlets(context: Context, outlets: Sequence[Any], facts: dict[str, Any]) -> None:
    """Put the facts of a file into the event of each asset among the outlets, so that a DAG that is
    scheduled on the asset can use them. Keys that the author set stay."""
    events: Any = context.get("outlet_events")
    if events is None:
        return
    for outlet in outlets:
        if getattr(outlet, "uri", None) is not None:
            extra = events[outlet].extra
            extra.update({key: value for key, value in facts.items() if key not in extra})
