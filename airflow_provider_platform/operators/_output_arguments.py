"""Where and how a task writes files: its arguments, checked before anything is sent, its path in a
storage, and what it reports of the files.

A path is local, or the URL of any storage that Airflow knows.
"""

from __future__ import annotations

import os
import unicodedata
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args
from urllib.parse import urlsplit

from airflow_provider_platform._airflow import loop_pass
from airflow_provider_platform.client import argument_rules as arguments
from airflow_provider_platform.client.argument_rules import from_json
from airflow_provider_platform.client.choices import RowFormat
from airflow_provider_platform.client.errors import PlatformInputError, ResultWriteError
from airflow_provider_platform.client.redaction import quote_service

if TYPE_CHECKING:
    from collections.abc import Sequence

    from airflow_provider_platform._airflow import Context, ObjectStoragePath
    from airflow_provider_platform.files.options import Output
    from airflow_provider_platform.files.save import SavedRows


_PROVIDERS = {
    **dict.fromkeys(("s3", "s3a"), "apache-airflow-providers-amazon[s3fs]"),
    **dict.fromkeys(("gs", "gcs"), "apache-airflow-providers-google"),
    **dict.fromkeys(("abfs", "abfss", "adl"), "apache-airflow-providers-microsoft-azure"),
}

_NOT_IN_PATHS = ("Cc", "Cs", "Zl", "Zp")
"""Unicode categories: control characters, halves of characters, line and paragraph separators."""


def output_place(name: str, value: Any) -> Any:
    """Return where to write: a string, or a path object, that names a file or a folder. Raises
    PlatformInputError."""
    if isinstance(value, os.PathLike) or hasattr(value, "open"):
        _check_characters(name, str(value))
        return value
    path = arguments.text(name, value)
    _check_characters(name, path)
    return path


def output_path(name: str, value: Any) -> Any:
    """Return the path of a file, checked as by `output_place`. Raises PlatformInputError."""
    path = output_place(name, value)
    if isinstance(path, str) and path.endswith(("/", os.sep)):
        raise arguments.refuse(name, "must be a file, not a folder")
    return path


optional_output_place = arguments.or_none(output_place)


def storage_path(name: str, target: Any) -> ObjectStoragePath:
    """Return the path in its storage. Raises PlatformInputError for a storage or a connection that
    Airflow does not know, and for a path that begins with `~`; ResultWriteError for a storage that
    cannot be reached."""
    from airflow_provider_platform._airflow import ObjectStoragePath

    if str(target).startswith("~"):
        raise PlatformInputError(
            f"Nothing was sent: {name} begins with ~, which is not expanded. Write the full path.",
            where=quote_service(target),
            field=name,
        )
    # Before Airflow opens the storage: without the connection it would use the worker's own
    # permissions.
    _check_connection(name, _connection_id(target))
    try:
        path = target if isinstance(target, ObjectStoragePath) else _object_path(str(target))
        path.fs  # noqa: B018 - looked up here, before anything is done for the file
    except (ValueError, ImportError) as error:
        raise PlatformInputError(
            f"Nothing was sent: {name} cannot be written to: {quote_service(error)}"
            f"{_what_to_install(str(target))}.",
            field=name,
        ) from error
    except Exception as error:
        from airflow_provider_platform.files.whole_files import storage_words

        raise ResultWriteError(
            f"Nothing was sent: {name} cannot be written to: {storage_words(error)}.",
            where=quote_service(target),
        ) from error
    return path


def _connection_id(target: Any) -> str | None:
    """Return the id of the Airflow connection in an address or a path object, read as Airflow reads
    it."""
    if hasattr(target, "conn_id"):
        named: str | None = target.conn_id
        return named
    text = str(target)
    return urlsplit(text).netloc.rpartition("@")[0] or None if "://" in text else None


def _check_connection(name: str, conn_id: str | None) -> None:
    """Raise PlatformInputError for a connection that Airflow does not have."""
    from airflow_provider_platform._airflow import AirflowNotFoundException, BaseHook

    if conn_id is None:
        return
    try:
        BaseHook.get_connection(conn_id)
    except AirflowNotFoundException:
        if ":" in conn_id:  # may be a pasted key and its secret, which no error may show
            problem = "the part before the @ is not the id of an Airflow connection"
        else:
            problem = f"Airflow has no connection {conn_id!r}"
        raise PlatformInputError(
            f"Nothing was sent: {name}: {problem}. Create the connection, or correct the address "
            "(s3://my_conn@bucket/key). Without a connection id before the @, the worker's own "
            "credentials are used.",
            field=name,
        ) from None


def _check_characters(name: str, text: str) -> None:
    """Raise PlatformInputError for a path whose written name would differ from the visible one: a
    line end, another control character, half a character, or spaces around it."""
    odd = next(
        (character for character in text if unicodedata.category(character) in _NOT_IN_PATHS), None
    )
    if odd is not None:
        problem = f"contains the control character {odd!a} at position {text.index(odd) + 1}"
    elif text != text.strip():
        problem = "begins or ends with a space"
    else:
        return
    raise arguments.refuse(
        name,
        f"{problem}. A template may have added this character: "
        "{{ value | trim }} removes line ends and spaces around a value",
    )


def _object_path(text: str) -> ObjectStoragePath:
    """Return Airflow's path object. Airflow 3.0 reads a relative path as a path below the root."""
    from airflow_provider_platform._airflow import ObjectStoragePath

    path = ObjectStoragePath(text)
    is_relative = "://" not in text and not Path(text).is_absolute()
    if is_relative and path.path.startswith("/"):
        return ObjectStoragePath(str(Path.cwd() / text))
    return path


def _what_to_install(target: str) -> str:
    """Return which package adds the storage of an address to Airflow, if it is known."""
    scheme, _, rest = target.partition("://")
    package = _PROVIDERS.get(scheme) if rest else None
    return f"; install {package}" if package else ""


def output_target(name: str, value: Any, *, inside: str | None = None) -> ObjectStoragePath:
    """The path of a result in its storage, checked before anything is sent. The path is a file, or
    the folder of a file `inside`. Raises PlatformInputError for a path that cannot be written to,
    ResultWriteError for a storage that cannot be reached."""
    from airflow_provider_platform.files.whole_files import check_place

    path = storage_path(name, value)
    check_place(name, path if inside is None else path / inside)
    return path


@arguments.or_none
def optional_folder(name: str, value: Any) -> Any:
    """Return a folder, as a string without a `/` at its end or as a path object; None for an empty
    value. Raises PlatformInputError."""
    place = output_place(name, value)
    return place.rstrip("/") or place if isinstance(place, str) else place


LISTED_FILES = 100
"""So many files a task's result lists."""
optional_format = partial(arguments.optional_choice, choices=get_args(RowFormat))


@arguments.or_none
def optional_options(name: str, value: Any) -> dict[str, Any] | None:
    """Return the options of a file, or None; checked as soon as they are known. Raises
    PlatformInputError."""
    options = arguments.mapping(name, value)
    if options is not None:
        from airflow_provider_platform.files.options import (
            output_options as check,
        )

        with arguments.within(name):
            check(options)
    return options


def column_types(name: str, value: Any) -> str | dict[str, str]:
    """Return the types of the columns of a result: a mode, or a type for each named column, also
    from a JSON string. Raises PlatformInputError."""
    from airflow_provider_platform.files.types import ColumnTypes

    is_object = isinstance(value, dict) or str(value).lstrip().startswith("{")
    parsed: Any = from_json(name, value, dict, "must be a dict") if is_object else value
    try:
        ColumnTypes.parse(parsed)
    except ValueError as error:
        raise arguments.refuse(name, str(error)) from None
    types: str | dict[str, str] = parsed
    return types


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
    in_pass = loop_pass(context)
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
    from airflow_provider_platform.files.save import exists
    from airflow_provider_platform.files.task_paths import writer_id

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


def written_files(saved: SavedRows, output: Output) -> dict[str, Any]:
    """Return the part of a task's result about its file, or about the files in its folder."""
    facts: dict[str, Any] = {"path": saved.path, "format": saved.format, "bytes": saved.bytes}
    if output.is_folder:
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
