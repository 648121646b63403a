"""Dashboard exports: retries re-attach to a running export, and never leave half a file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform._airflow import AirflowFailException
from airflow_provider_platform.client.errors import (
    PlatformError,
    PlatformInputError,
    PlatformProtocolError,
    PlatformRateLimitError,
    PlatformTransportError,
)
from airflow_provider_platform.files.whole_files import write_whole
from airflow_provider_platform.hooks.platform import PlatformHook
from airflow_provider_platform.operators._output_arguments import storage_path
from airflow_provider_platform.operators.exports import PlatformExportDashboardOperator
from airflow_provider_platform.resources.exports import ExportRunKind, start_dashboard_export
from tests.support.task_context import TaskDeferred, TaskTries

if TYPE_CHECKING:
    from pathlib import Path

    from airflow_provider_platform.sandbox.server import Sandbox


def export(path: Path, **arguments: Any) -> PlatformExportDashboardOperator:
    return PlatformExportDashboardOperator(
        task_id="export",
        output_path=path,
        **{"dashboard_id": 501, "poll_interval": 0.05, "deferrable": False, **arguments},
    )


def starts(sandbox: Sandbox) -> int:
    return sum(request.method == "POST" for request in sandbox.control.state().requests)


def test_retry_after_the_end_writes_no_file_again(
    platform_sandbox: Sandbox, tmp_path: Path
) -> None:
    tries = TaskTries()
    first = export(tmp_path / "a.pdf").execute(tries.context())
    platform_sandbox.control.advance(301)
    assert export(tmp_path / "a.pdf").execute(tries.context()) == first
    assert starts(platform_sandbox) == 1


def test_retry_does_not_wait_for_an_export_that_the_platform_has_deleted(
    platform_sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    platform_sandbox.control.set(export_pace=400)
    tries = TaskTries()
    waiting = {"deferrable": True, "timeout": 900}
    with pytest.raises(TaskDeferred):
        export(tmp_path / "a.pdf", **waiting).execute(tries.context())
    platform_sandbox.control.advance(301)
    monkeypatch.setattr(ExportRunKind, "lifetime", 0.0)  # of the five minutes, none is left
    with pytest.raises(TaskDeferred):
        export(tmp_path / "a.pdf", **waiting).execute(tries.context())
    assert starts(platform_sandbox) == 2


def test_unwritable_path_is_reported_before_the_export_starts(
    platform_sandbox: Sandbox, tmp_path: Path
) -> None:
    with pytest.raises(AirflowFailException, match="this is a folder, not a file"):
        export(tmp_path).execute(TaskTries().context())
    assert starts(platform_sandbox) == 0


@pytest.mark.parametrize(
    ("body", "count", "error", "words"),
    [
        ("json", 1, PlatformProtocolError, "JSON instead of the file: no disk"),
        ("empty", 5, PlatformTransportError, "the response is empty"),  # each attempt of the try
    ],
)
def test_download_that_is_not_the_file_replaces_no_file(
    platform_sandbox: Sandbox,
    tmp_path: Path,
    body: str,
    count: int,
    error: type[PlatformError],
    words: str,
) -> None:
    (tmp_path / "a.pdf").write_bytes(b"yesterday's")
    fault = {"status": 200, "body": body, "message": "no disk", "count": count}
    platform_sandbox.control.fault("status", path="download", **fault)
    tries = TaskTries()
    with pytest.raises(error, match=words):
        export(tmp_path / "a.pdf").execute(tries.context())
    assert (tmp_path / "a.pdf").read_bytes() == b"yesterday's"
    export(tmp_path / "a.pdf").execute(tries.context())
    assert (tmp_path / "a.pdf").read_bytes().startswith(b"%PDF-")


def test_existing_file_is_replaced_atomically(tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    path.write_bytes(b"old and longer")
    write_whole(storage_path("output_path", path), b"new")
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_a_storage_of_airflow_is_written_to() -> None:
    from airflow.sdk.io import attach
    from fsspec.implementations.memory import MemoryFileSystem

    attach(protocol="memory", fs=MemoryFileSystem())
    path = storage_path("output_path", "memory://reports/a.pdf")
    write_whole(path, b"pdf")
    assert path.read_bytes() == b"pdf"
    assert storage_path("output_path", path) is path


def test_unknown_storage_is_refused_before_a_request(
    platform_sandbox: Sandbox,
) -> None:
    operator = PlatformExportDashboardOperator(
        task_id="export", output_path="floppy://a.pdf", dashboard_id=501
    )
    with pytest.raises(AirflowFailException, match="output_path"):
        operator.execute(TaskTries().context())
    assert starts(platform_sandbox) == 0


def test_retry_starts_the_export_that_was_one_too_many(
    platform_sandbox: Sandbox, tmp_path: Path
) -> None:
    platform_sandbox.control.set(export_pace=100)
    running = {"format": "pdf", "dashboardId": 501}
    for _ in range(5):
        PlatformHook().run(start_dashboard_export(deployment_id=1, body=running))
    tries = TaskTries()
    with pytest.raises(PlatformRateLimitError, match="Too many exports are in flight"):
        export(tmp_path / "a.pdf").execute(tries.context())
    platform_sandbox.control.advance(201)
    platform_sandbox.control.set(export_pace=0)
    export(tmp_path / "a.pdf").execute(tries.context())
    assert (tmp_path / "a.pdf").exists()


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ({"output_path": ""}, "output_path"),
        ({"output_path": "reports/"}, "output_path"),
        ({"format": "gif"}, "format"),
        ({"dashboard_public_id": "p"}, "dashboard_id"),
        ({"dashboard_id": None}, "dashboard_id"),
        ({"layout": "print", "format": "png"}, "layout"),
        ({"time_grains": [{"member": "o.d"}]}, "[0].grain"),
        ({"render_as": {"type": "SLACK"}}, "type"),
        ({"timeout": 0}, "timeout"),
    ],
)
def test_invalid_arguments_are_refused_when_the_dag_is_parsed(
    arguments: dict[str, Any], field: str
) -> None:
    with pytest.raises(PlatformInputError) as caught:
        PlatformExportDashboardOperator(
            task_id="export", **{"output_path": "a.pdf", "dashboard_id": 501, **arguments}
        )
    assert caught.value.field == field
