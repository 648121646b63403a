"""Files that tasks write: to a local path, or to any storage that Airflow knows by its URL."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.client.errors import PlatformInputError
from airflow_provider_platform.client.formats.service_text import quote_service
from airflow_provider_platform.operators._base import arguments

if TYPE_CHECKING:
    from airflow_provider_platform._airflow import ObjectStoragePath

_PROVIDERS = {
    **dict.fromkeys(("s3", "s3a"), "apache-airflow-providers-amazon[s3fs]"),
    **dict.fromkeys(("gs", "gcs"), "apache-airflow-providers-google"),
    **dict.fromkeys(("abfs", "abfss", "adl"), "apache-airflow-providers-microsoft-azure"),
}


def output_path(name: str, value: Any) -> Any:
    """Where to write: text, or a path object, that names a file. Raises PlatformInputError."""
    if isinstance(value, os.PathLike) or hasattr(value, "open"):
        return value
    found = arguments.text(name, value)
    if found.endswith(("/", os.sep)):
        raise PlatformInputError(
            f"Nothing was sent: {name} must name a file, not a folder.", field=name
        )
    return found


optional_output_path = arguments.or_none(output_path)


def storage_path(name: str, target: Any) -> ObjectStoragePath:
    """The path in its storage. Raises PlatformInputError for a storage that Airflow does not
    know, and for a path in somebody's home."""
    from airflow_provider_platform._airflow import ObjectStoragePath

    if str(target).startswith("~"):
        raise PlatformInputError(
            f"Nothing was sent: {name} {target}: a home is not looked up here: write the whole "
            "path.",
            field=name,
        )
    try:
        path = target if isinstance(target, ObjectStoragePath) else _object_path(str(target))
        path.fs  # noqa: B018 - looked up here, before anything is done for the file
    except (ValueError, ImportError) as error:
        raise PlatformInputError(
            f"Nothing was sent: {name} cannot be written to: {quote_service(error)}"
            f"{_what_to_install(str(target))}.",
            field=name,
        ) from error
    return path


def _object_path(text: str) -> ObjectStoragePath:
    """Airflow's path object. That of 3.0 takes a relative path for one below the root."""
    from airflow_provider_platform._airflow import ObjectStoragePath

    path = ObjectStoragePath(text)
    is_relative = "://" not in text and not Path(text).is_absolute()
    if is_relative and path.path.startswith("/"):
        return ObjectStoragePath(str(Path.cwd() / text))
    return path


def _what_to_install(target: str) -> str:
    """What brings the storage of an address to Airflow, where it is known."""
    scheme, _, rest = target.partition("://")
    package = _PROVIDERS.get(scheme) if rest else None
    return f"; install {package}" if package else ""


def output_target(name: str, value: Any) -> ObjectStoragePath | None:
    """The path of an optional file in its storage, looked at before anything is sent. Raises
    PlatformInputError for a storage that Airflow does not know, and for a place where no file can
    be written."""
    from airflow_provider_platform.results.atomic_files import check_place

    if value is None:
        return None
    path = storage_path(name, value)
    check_place(name, path)
    return path


def optional_folder(name: str, value: Any) -> Any:
    """A folder, as text without a `/` at its end or as a path object; None where it says nothing.
    Raises PlatformInputError."""
    found = arguments.optional(value)
    if found is None or isinstance(found, os.PathLike) or hasattr(found, "open"):
        return found
    text = arguments.text(name, found)
    return text.rstrip("/") or text
