"""Dashboard exports: what becomes of an export that failed, or that the service no longer has."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_platform.client.errors import (
    DashboardExportFailedError,
    PlatformApiError,
    PlatformConflictError,
    PlatformNotFoundError,
    PlatformServerError,
)
from airflow_provider_platform.resources.exports import ExportOutcome, ExportRunKind, download
from airflow_provider_platform.resources.run_kind import RunEnvironment
from tests.support.fakes.effects import api_with, play

IDS = {"deployment_id": 1, "job_id": "j-1", "submitted_at": 0.0}
ENV = RunEnvironment(deadline=600.0)
API = api_with(lambda: 0.0)
KIND = ExportRunKind(format="pdf", dashboard_id=501)


def answers(answer: Any) -> Any:
    """The service answers each request with this."""

    def perform(effect: Any) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return effect.operation.read(answer)

    return perform


@pytest.mark.parametrize(
    ("refusal", "said"),
    [
        (PlatformNotFoundError("gone", status=404), "The service no longer has the dashboard"),
        (PlatformConflictError("still pending", status=409), "still pending"),
        (PlatformApiError("it failed", status=422), "it failed"),
    ],
)
def test_export_without_a_file_fails_the_task(refusal: PlatformApiError, said: str) -> None:
    with pytest.raises(DashboardExportFailedError, match=said):
        play(download(API, 1, "j-1", "pdf"), answers(refusal))


def test_download_that_fails_otherwise_may_be_repeated() -> None:
    with pytest.raises(PlatformServerError):
        play(download(API, 1, "j-1", "pdf"), answers(PlatformServerError("oops", status=503)))


def test_what_is_no_file_of_the_format_is_not_written() -> None:
    with pytest.raises(DashboardExportFailedError, match="is not a PDF file"):
        play(download(API, 1, "j-1", "pdf"), lambda _: b"\x89PNG\r\n\x1a\n.")


@pytest.mark.parametrize(
    "answer", [PlatformNotFoundError("gone", status=404), {"status": "failed", "error": "no data"}]
)
def test_a_retry_starts_a_new_export_if_the_earlier_one_has_failed(answer: Any) -> None:
    """A last poll at the deadline reports no end either: the error of the deadline stays."""
    with pytest.raises(DashboardExportFailedError):
        play(KIND.poll(API, dict(IDS)), answers(answer))
    assert play(KIND.poll_past_deadline(API, ENV, dict(IDS)), answers(answer)) is None
    assert play(KIND.find(API, ENV, dict(IDS)), answers(answer)) == (False, IDS)


def test_export_that_was_written_is_not_asked_for_again() -> None:
    written = {**IDS, "written": True}
    assert play(KIND.poll(API, written), answers(AssertionError)) == ExportOutcome()
