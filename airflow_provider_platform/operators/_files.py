"""Files that tasks write: to a local path, or to any storage that Airflow knows by its URL."""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.client.errors import PlatformInputError, quote_service
from airflow_provider_platform.operators._base import arguments

if TYPE_CHECKING:
    from airflow_provider_platform._airflow import ObjectStoragePath

_LOCAL = ("", "file", "local")


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


def storage_path(name: str, target: Any) -> ObjectStoragePath:
    """The path in its storage. Raises PlatformInputError for a storage that Airflow does not
    know."""
    from airflow_provider_platform._airflow import ObjectStoragePath

    try:
        path = target if isinstance(target, ObjectStoragePath) else ObjectStoragePath(str(target))
        if path.protocol not in _LOCAL:
            path.fs  # noqa: B018 - looked up here, before anything is done for the file
    except (ValueError, ImportError) as error:
        raise PlatformInputError(
            f"Nothing was sent: {name} cannot be written to: {quote_service(error)}.", field=name
        ) from error
    return path


def write_file(path: ObjectStoragePath, data: bytes) -> None:
    """Write a file, folders included; a local one is there as a whole or not at all."""
    if path.protocol in _LOCAL:
        _write_local(Path(path.path), data)
        return
    with path.open("wb") as file:
        file.write(data)


def _write_local(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        partial.write_bytes(data)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
