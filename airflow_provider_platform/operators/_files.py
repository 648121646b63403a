"""Files that tasks write: to a local path, or to any storage that Airflow knows by its URL."""

from __future__ import annotations

import os
import uuid
from pathlib import Path
from typing import Any

from airflow_provider_platform.client.errors import PlatformInputError
from airflow_provider_platform.operators import _arguments as arguments

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


def write_file(target: Any, data: bytes) -> str:
    """Write a file, folders included, and return its path; a local one is whole or not there."""
    from airflow_provider_platform._airflow import ObjectStoragePath

    path = target if isinstance(target, ObjectStoragePath) else ObjectStoragePath(str(target))
    if path.protocol in _LOCAL:
        _write_local(Path(path.path), data)
    else:
        with path.open("wb") as file:
            file.write(data)
    return str(target)


def _write_local(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        partial.write_bytes(data)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
