"""What is in the place of a result already, and whose it is.

A task that must not overwrite asks before it runs its query. What an earlier try of the same task
run has written does not count: a worker may be lost after its file is whole, and the retry would
find that file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_provider_platform.results.atomic_files import writing
from airflow_provider_platform.results.dataset import data_files, writer_of
from airflow_provider_platform.results.manifest import (
    file_manifest,
    folder_manifest,
    is_there,
    read_manifest,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from airflow_provider_platform.results.output import Output


def find_existing(
    path: Any, output: Output, written_by: Mapping[str, Any], writer: str
) -> dict[str, Any] | None:
    """Return what the manifest says of the files of others at this path, {} without one, and None
    where the place is free. Raises ResultWriteError where the storage does not answer."""
    if output.layout is None:
        if not is_there(path):
            return None
        found = read_manifest(file_manifest(path)) or {}
        return None if found.get("written_by") == dict(written_by) else found
    with writing(path):
        writers = {writer_of(name) for name in data_files(path)}
    others = writers - {writer}
    if not others:
        return None
    manifests = [read_manifest(folder_manifest(path, one)) for one in others if one is not None]
    return {"truncated": any(one and one.get("truncated") for one in manifests)}
