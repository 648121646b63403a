"""Reports: what the answers that are read become."""

from __future__ import annotations

import pytest

from airflow_provider_platform.client.errors import PlatformProtocolError
from airflow_provider_platform.resources.reports import get_report


def test_a_report_keeps_what_the_service_sent() -> None:
    sent = {
        "id": 12,
        "name": "Revenue",
        "updatedAt": "2026-07-21T08:00:00.000Z",
        "canEdit": True,
        "externalWorkbookPlacements": [{"workbookId": "sheet-1"}],
    }
    report = get_report(deployment_id=7, report_id=12).read(sent)
    assert report.updated_at is not None
    assert report.to_json() == sent


def test_a_report_without_an_id_breaks_the_contract() -> None:
    with pytest.raises(PlatformProtocolError, match="id"):
        get_report(deployment_id=7, report_id=12).read({"name": "x"})
