"""Every documented field of the chat request is accepted, and checked as it is declared."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.raw_client import USER, Platform, answer, results

IMAGE = {"mimeType": "image/png", "data": "aGVsbG8=", "name": "chart.png"}


@pytest.mark.parametrize(
    "fields",
    [
        {"images": [IMAGE, {"mimeType": "image/png", "data": "aGVsbG8="}]},
        {"images": []},
        {"context": "workbook"},
        {"context": "published-dashboard"},
        {"agentId": None},
        {"agentId": 1},
        {"workbookId": 301},
        {"isDevMode": False},
        {"cubeCredentials": {"anything": 1}},
        {
            "workbookContext": {
                "charts": [{"widgetId": "chart-1", "sql": "SELECT 1", "reportId": 101}],
                "filters": [{"widgetId": "f", "semanticView": "orders", "filter": {"a": 1}}],
            }
        },
        {
            "dashboardContext": {
                "publicId": "dash00000501",
                "title": "Sales",
                "widgets": [1, "two"],
                "viewerState": {"filterState": {}, "timeGrainState": {}},
                "snapshots": [{"widgetId": "chart-1", "data": [[1]], "spec": {}, "sqlQuery": ""}],
            }
        },
        {"sessionSettings": {**USER, "timezone": "Europe/Berlin"}},
        {"sessionSettings": {**USER, "settings": {"timezone": "Asia/Tokyo"}}},
        {"sessionSettings": {**USER, "allowChatWorkspaceAuthoring": False}},
        {"sessionSettings": {**USER, "publicDashboardId": "dash00000501", "roles": ["viewer"]}},
        {"sessionSettings": {**USER, "userAttributes": [{"name": "country", "value": ""}]}},
    ],
)
def test_documented_request_fields_are_accepted(platform: Platform, fields: dict[str, Any]) -> None:
    assert answer(platform.ask("orders per month", **fields))


def test_setting_sends_values_of_rows_as_strings(platform: Platform) -> None:
    """As the data API sends them: the documents leave open what the agent's rows hold."""
    question = "sql: SELECT country, SUM(amount), NULL FROM orders, customers GROUP BY 1 LIMIT 1"
    ((values,),) = (result["data"] for result in results(platform.ask(question)))
    platform.control.set(chat_rows="texts")
    ((texts,),) = (result["data"] for result in results(platform.ask(question)))
    assert isinstance(values[1], float)
    assert texts == [values[0], str(values[1]), None]
