"""The manifest of a result's files: a JSON file that lists them with the result's columns.

It is written last and taken away before anything is replaced: if it exists, every file that it
lists exists. Its name begins with `_`, so that Spark, Athena, Trino and pyarrow do not take it for
data.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.results.files.atomic import is_local, write_whole, writing

if TYPE_CHECKING:
    from collections.abc import Iterable


def file_manifest(path: Any) -> Any:
    """The path of the manifest of a single file: beside it, as `_rows.jsonl.manifest.json`."""
    return path.parent / f"_{path.name}.manifest.json"


def folder_manifest(folder: Any, writer: str) -> Any:
    """The path of the manifest that a writer has in a folder."""
    return folder / f"_manifest-{writer}.json"


def write_manifest(path: Any, content: dict[str, Any]) -> None:
    """Write a manifest. Raises ResultWriteError."""
    text = json.dumps(content, ensure_ascii=False, indent=2, default=str)
    write_whole(path, text.encode("utf-8", "backslashreplace") + b"\n")


def read_manifest(path: Any) -> dict[str, Any] | None:
    """What a manifest holds: None where there is none, {} where it cannot be understood. Raises
    ResultWriteError where the storage does not answer."""
    forget_listings([path])
    with writing(path):
        try:
            # From 0, S3's library asks for the object and not for its size first: whoever may write
            # may not be allowed to look.
            data = path.read_bytes() if is_local(path) else path.fs.cat_file(path.path, start=0)
            content = json.loads(data)
        except (FileNotFoundError, PermissionError):  # who may not list is not told more
            return None
        except ValueError:
            return {}
    return content if isinstance(content, dict) else {}


def take_manifest_away(path: Any) -> dict[str, Any] | None:
    """`read_manifest`, and remove it."""
    content = read_manifest(path)
    if content is not None:
        with writing(path):
            path.unlink()
    return content


def is_there(path: Any) -> bool:
    """Whether there is a file, or anything in a folder. Raises ResultWriteError where the storage
    does not answer."""
    forget_listings([path])
    with writing(path):
        return bool(path.exists())


def forget_listings(paths: Iterable[Any]) -> None:
    """Storages remember what was in a folder; others may have written since."""
    for path in paths:
        if not is_local(path) and (forget := getattr(path.fs, "invalidate_cache", None)):
            forget()
