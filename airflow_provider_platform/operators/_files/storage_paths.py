"""Files that tasks write: to a local path, or to any storage that Airflow knows by its URL."""

from __future__ import annotations

import os
import unicodedata
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from airflow_provider_platform.client.errors import PlatformInputError, ResultWriteError
from airflow_provider_platform.client.service_text import quote_service
from airflow_provider_platform.operators._base import arguments

if TYPE_CHECKING:
    from airflow_provider_platform._airflow import ObjectStoragePath

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
        from airflow_provider_platform.files.store import storage_words

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
    from airflow_provider_platform.files.store import check_place

    path = storage_path(name, value)
    check_place(name, path if inside is None else path / inside)
    return path


def optional_folder(name: str, value: Any) -> Any:
    """Return a folder, as a string without a `/` at its end or as a path object; None for an empty
    value. Raises PlatformInputError."""
    folder = arguments.optional(value)
    if folder is None:
        return None
    if isinstance(folder, os.PathLike) or hasattr(folder, "open"):
        _check_characters(name, str(folder))
        return folder
    text = arguments.text(name, folder)
    _check_characters(name, text)
    return text.rstrip("/") or text
