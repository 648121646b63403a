"""Queries by member over the data API: rows, filters, formats, limits and refusals."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.sandbox.raw_client import Platform

BY_COUNTRY = {
    "measures": ["orders.revenue", "orders.count"],
    "dimensions": ["customers.country"],
    "order": {"orders.revenue": "desc"},
}


def ask(platform: Platform, query: Any, method: str = "POST", **body: Any) -> Any:
    token = platform.call("POST", "deployments/1/token").json()["cubeApiToken"]
    url = f"{platform.sandbox.url}/deployments/1/cubejs-api/v1/load"
    headers = {"Authorization": token}
    if method == "GET":
        return platform.http.get(url, params={"query": json.dumps(query)}, headers=headers)
    return platform.http.request(method, url, json={"query": query, **body}, headers=headers)


def rows(platform: Platform, query: dict[str, Any]) -> list[dict[str, str]]:
    response = ask(platform, query)
    assert response.status_code == 200, response.text
    return list(response.json()["data"])


@pytest.mark.parametrize("method", ["POST", "GET"])
def test_rows_by_member(platform: Platform, method: str) -> None:
    answer = ask(platform, {**BY_COUNTRY, "limit": 3, "total": True}, method).json()
    assert (len(answer["data"]), answer["total"]) == (3, 8)
    assert set(answer["data"][0]) == {"customers.country", "orders.revenue", "orders.count"}
    revenues = [float(row["orders.revenue"]) for row in answer["data"]]
    assert revenues == sorted(revenues, reverse=True)
    assert all(isinstance(row["orders.count"], str) for row in answer["data"])
    assert answer["annotation"]["dimensions"]["customers.country"]["type"] == "string"


def test_pages_by_limit_and_offset(platform: Platform) -> None:
    everything = rows(platform, BY_COUNTRY)
    pages = [rows(platform, {**BY_COUNTRY, "limit": 3, "offset": n}) for n in (0, 3, 6)]
    assert [row for page in pages for row in page] == everything


def test_filters(platform: Platform) -> None:
    def countries(*filters: dict[str, Any], **more: Any) -> set[str]:
        found = rows(platform, {**BY_COUNTRY, "filters": list(filters), **more})
        return {row["customers.country"] for row in found}

    country = {"member": "customers.country"}
    equals = {**country, "operator": "equals", "values": ["Spain", "Italy"]}
    assert countries(equals) == {"Spain", "Italy"}
    assert "Spain" not in countries({**equals, "operator": "notEquals"})
    assert countries({**country, "operator": "startsWith", "values": ["Po"]}) == {
        "Poland",
        "Portugal",
    }
    either = {"or": [equals, {**country, "operator": "contains", "values": ["many"]}]}
    assert countries(either) == {"Spain", "Italy", "Germany"}
    many = {"member": "orders.count", "operator": "gt", "values": ["100000"]}
    assert countries(many) == set()
    quoted = {**country, "operator": "equals", "values": ["'; DROP TABLE orders; --"]}
    assert countries(quoted) == set()
    months = {"dimension": "orders.month", "dateRange": ["2025-01-01", "2025-02-28"]}
    early = rows(platform, {"measures": ["orders.count"], "timeDimensions": [months]})
    assert early == [{"orders.count": "80"}]


def test_formats(platform: Platform) -> None:
    compact = ask(platform, {**BY_COUNTRY, "responseFormat": "compact"}).json()["data"]
    assert compact["members"][0] == "customers.country"
    columnar = ask(platform, {**BY_COUNTRY, "responseFormat": "columnar"}).json()["data"]
    assert columnar["columns"][0] == [row[0] for row in compact["dataset"]]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({}, "should contain either measures"),
        ({"measures": ["orders.profit"]}, "'orders.profit' not found"),
        ({"measures": "orders.count"}, "must be an array"),
        ({**BY_COUNTRY, "limit": 50_001}, "not be greater than 50000"),
        ({**BY_COUNTRY, "filters": [{"member": "orders.count", "operator": "near"}]}, "values"),
        ({**BY_COUNTRY, "filters": [{"and": "x"}]}, "and must be a list"),
        ({**BY_COUNTRY, "filters": [{"or": []}]}, "cannot mix"),
        (
            {**BY_COUNTRY, "filters": [{"member": "orders.count", "operator": "gt", "values": 5}]},
            "values must be a list",
        ),
        ({**BY_COUNTRY, "order": [["orders.count", "up"]]}, "asc or desc"),
        ({**BY_COUNTRY, "columns": []}, "columns should not exist"),
    ],
)
def test_refusals(platform: Platform, query: dict[str, Any], words: str) -> None:
    response = ask(platform, query)
    assert response.status_code == 400
    assert words in response.json()["error"]


def test_waiting_and_other_methods(platform: Platform) -> None:
    platform.control.fault("continue_wait", api="data")
    assert ask(platform, BY_COUNTRY).json() == {"error": "Continue wait"}
    assert ask(platform, BY_COUNTRY).json()["data"]
    refused = ask(platform, BY_COUNTRY, "PUT")
    assert (refused.status_code, "Cannot PUT" in refused.json()["error"]) == (405, True)
