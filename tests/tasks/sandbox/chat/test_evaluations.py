"""Evaluations of agents: verdicts, their pace, pages, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.sandbox.chat.evaluations import agree

if TYPE_CHECKING:
    from tests.support.raw_client import Platform

PATH = "deployments/1/evaluations"
ALL = ["revenue by country", "orders per month", "top 5 products", "list all customers"]


def start(platform: Platform, **body: Any) -> int:
    answer = platform.call("POST", PATH, json={"branchName": "main", **body})
    assert answer.status_code == 200, answer.text
    number: int = answer.json()["id"]
    return number


def results(platform: Platform, number: int) -> list[dict[str, Any]]:
    answer = platform.call("GET", f"{PATH}/{number}/results").json()
    assert answer["pageInfo"]["hasNextPage"] is False
    items: list[dict[str, Any]] = answer["items"]
    return items


def verdicts(platform: Platform, **body: Any) -> list[str]:
    return [one["verdict"] for one in results(platform, start(platform, **body))]


def test_planned_answers_decide_the_verdicts_of_the_next_run(platform: Platform) -> None:
    platform.control.answer(ALL[0], sql="SELECT 1")
    platform.control.answer(ALL[1], sql=None)
    platform.control.answer(ALL[2], error="overloaded")
    platform.control.answer(ALL[3], sql="SELECT id FROM nowhere")
    found = results(platform, start(platform))
    assert [one["verdict"] for one in found] == ["fail", "review", "error", "error"]
    assert [one["score"] for one in found] == [0, None, None, None]
    assert verdicts(platform) == ["pass"] * 4
    assert len(platform.control.state().changed("evaluations")) == 2


def test_status_follows_the_pace_and_results_come_at_the_end(platform: Platform) -> None:
    platform.control.set(evaluation_pace=1_000)
    number, seen = start(platform), []
    for _ in range(3):
        run = platform.call("GET", f"{PATH}/{number}").json()
        seen.append((run["status"], len(results(platform, number))))
        platform.control.advance(1_000)
    assert seen == [("queued", 0), ("running", 0), ("completed", 4)]
    assert run == {"id": number, "status": "completed", "branchName": "main", "agentName": "auto"}


def test_results_have_pages(platform: Platform) -> None:
    path, texts, after = f"{PATH}/{start(platform)}/results", [], {}
    while True:
        page = platform.call("GET", path, params={"first": 3, **after}).json()
        texts.append([one["questionTextSnapshot"] for one in page["items"]])
        if not page["pageInfo"]["hasNextPage"]:
            break
        after = {"after": page["pageInfo"]["endCursor"]}
    assert texts == [ALL[:3], ALL[3:]]


@pytest.mark.parametrize(
    ("actual", "same"),
    [
        ([["b", 2], ["a", 10001]], True),
        ([[10001, "a"], [2, "b"]], True),
        ([["a", 1, 10001], ["b", 2, 2.0]], True),
        ([["a", 10009], ["b", 2]], False),
        ([["a", 2], ["b", 10001]], False),
        ([["a", 10001]], False),
        ([["a"], ["b"]], False),
    ],
)
def test_rows_agree_in_any_order_with_further_columns_and_to_four_figures(
    actual: list[list[Any]], same: bool
) -> None:
    assert agree([["a", 10_001.4], ["b", 2]], actual) is same
