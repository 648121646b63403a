"""Dashboard exports: what is sent, and what the answers become."""

from __future__ import annotations

from airflow_provider_platform.resources.exports import ExportRunKind, start_dashboard_export


def test_start_of_an_export_has_the_described_body() -> None:
    kind = ExportRunKind(
        format="pdf",
        dashboard_public_id="pub-1",
        layout="print",
        filters=[{"member": "o.s", "operator": "equals", "value": "x"}],
        time_grains=[{"member": "o.d", "grain": "day"}],
        render_as={"type": "EMBED_USER", "embedTenantName": "acme", "externalId": "u1"},
    )

    operation = start_dashboard_export(deployment_id=7, body=kind.body)

    assert operation.body == {
        "format": "pdf",
        "dashboardPublicId": "pub-1",
        "layout": "print",
        "filters": [{"member": "o.s", "operator": "equals", "value": "x"}],
        "timeGrains": [{"member": "o.d", "grain": "day"}],
        "renderAs": {"type": "EMBED_USER", "embedTenantName": "acme", "externalId": "u1"},
    }
    assert not operation.repeatable
    assert operation.read({"jobId": "j", "expiresAt": "2026-09-01T10:05:00Z"}).job_id == "j"
