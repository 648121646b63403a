"""Dashboard exports: what is sent, and what the answers become."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_provider_platform.client.errors import PlatformInputError
from airflow_provider_platform.resources.exports import (
    StartDashboardExportInput,
    start_dashboard_export,
)


def test_start_of_an_export_has_the_described_body() -> None:
    body = StartDashboardExportInput.build(
        format="pdf",
        dashboard_public_id="pub-1",
        layout="print",
        filters=[{"member": "o.s", "operator": "equals", "value": "x"}],
        time_grains=[{"member": "o.d", "grain": "day"}],
        render_as={"type": "EMBED_USER", "embedTenantName": "acme", "externalId": "u1"},
    )

    operation = start_dashboard_export(deployment_id=7, body=body)

    assert operation.body == {
        "format": "pdf",
        "dashboardPublicId": "pub-1",
        "layout": "print",
        "filters": [{"member": "o.s", "operator": "equals", "value": "x"}],
        "timeGrains": [{"member": "o.d", "grain": "day"}],
        "renderAs": {"type": "EMBED_USER", "embedTenantName": "acme", "externalId": "u1"},
    }
    assert not operation.repeatable
    job = operation.read({"jobId": "j", "expiresAt": "2026-09-01T10:05:00Z"})
    assert job.expires_at is not None
    assert job.expires_at.minute == 5


@pytest.mark.parametrize(
    "given",
    [
        {"format": "pdf"},
        {"format": "pdf", "dashboard_id": 1, "dashboard_public_id": "p"},
        {"format": "gif", "dashboard_id": 1},
        {"format": "png", "dashboard_id": 1, "layout": "print"},
        {"format": "pdf", "dashboard_id": 1, "render_as": {"type": "SLACK"}},
    ],
)
def test_exports_that_the_service_would_refuse_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(PlatformInputError):
        StartDashboardExportInput.build(**given)
