"""Every documented field of the chat request is accepted, and checked as it is declared."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.raw_client import USER, Platform, answer, ids, records, results

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


@pytest.mark.parametrize(
    ("fields", "rule"),
    [
        ({"images": [{"data": "aGVsbG8="}]}, "images[0].mimeType is required"),
        ({"images": [{**IMAGE, "url": "https://x"}]}, "property images[0].url should not exist"),
        ({"images": IMAGE}, "images must be an array"),
        ({"context": "kitchen"}, "context must be one of"),
        ({"workbookId": "301"}, "workbookId must be a number"),
        ({"isDevMode": "yes"}, "isDevMode must be a boolean"),
        ({"sessionSettings": {**USER, "timezone": "Mars/Base"}}, "must be an IANA time zone"),
        (
            {"sessionSettings": {**USER, "allowChatWorkspaceAuthoring": "no"}},
            "allowChatWorkspaceAuthoring must be a boolean",
        ),
    ],
)
def test_documented_request_fields_are_validated(
    platform: Platform, fields: dict[str, Any], rule: str
) -> None:
    response = platform.chat(input="orders per month", **fields)
    assert response.status_code == 400
    assert rule in " ".join(response.json()["message"])


def test_a_request_without_input_and_thread_creates_an_empty_thread(platform: Platform) -> None:
    """Neither field is required, and a thread is created where none is named."""
    stream = records(platform.chat().content)
    assert ids(stream) == ["__cutoff__", "__state__"]
    assert stream[1]["state"]["messages"] == []
    thread = stream[0]["state"]["chatId"]
    assert answer(platform.ask("orders per month", chatId=thread))
    assert len(platform.control.state().runs) == 1


def test_a_request_with_a_service_token_needs_no_body(platform: Platform) -> None:
    platform.control.set(service_tokens=True)
    url = f"{platform.sandbox.chat_url}/stream-chat-state"
    token = {"X-Service-Auth-Token": platform.sandbox.service_token()}
    assert ids(records(platform.http.post(url, headers=token).content))[0] == "__cutoff__"


def test_setting_sends_values_of_rows_as_strings(platform: Platform) -> None:
    """As the data API sends them: the documents leave open what the agent's rows hold."""
    question = "sql: SELECT country, SUM(amount), NULL FROM orders, customers GROUP BY 1 LIMIT 1"
    ((values,),) = (result["data"] for result in results(platform.ask(question)))
    platform.control.set(chat_rows="texts")
    ((texts,),) = (result["data"] for result in results(platform.ask(question)))
    assert isinstance(values[1], float)
    assert texts == [values[0], str(values[1]), None]
