"""What the sandbox's pages show, and what they must not do."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import httpx

    from tests.sandbox.raw_client import Platform


def page(platform: Platform, path: str = "/") -> httpx.Response:
    return platform.http.get(platform.sandbox.url + path)


def thread_of(platform: Platform, question: str) -> httpx.Response:
    platform.ask(question)
    run = platform.control.state().runs[-1]
    return page(platform, f"/app/threads/{run.chat_id}")


def test_a_thread_shows_question_answer_table_and_chart(platform: Platform) -> None:
    shown = thread_of(platform, "chart revenue by country")
    assert shown.status_code == 200
    text = shown.text
    assert "chart revenue by country" in text
    assert "Spain: 31,800.90 €" in text
    assert "<th>country</th>" in text
    assert '<td class="number">31,800.9</td>' in text
    assert text.count("<rect ") == 8
    widths = [float(width) for width in re.findall(r'<rect [^>]*width="([\d.]+)"', text)]
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] == pytest.approx(widths[0] * 16686.7 / 31800.9, rel=0.01)
    assert "vega-lite" in text


def test_values_over_months_are_drawn_as_a_line(platform: Platform) -> None:
    text = thread_of(platform, "chart orders per month").text
    points = re.search(r'<polyline points="([^"]+)"', text)
    assert points is not None
    assert len(points[1].split()) == text.count("<circle ") == 12


@pytest.mark.parametrize("question", ["chart orders per month", "chart revenue per month"])
def test_labels_of_a_line_do_not_overlap(platform: Platform, question: str) -> None:
    text = thread_of(platform, question).text
    for kind in (r'<text class="label" ', "<text "):
        pattern = rf'{kind}x="([\d.]+)" y="[\d.]+" text-anchor="middle">([^<]*)<'
        labels = [(float(x), len(label) * 6.5 / 2) for x, label in re.findall(pattern, text)]
        assert len(labels) >= 6
        ends = pairwise(labels)
        assert all(x + half < next_x - next_half for (x, half), (next_x, next_half) in ends)


def test_a_failed_query_says_why(platform: Platform) -> None:
    text = thread_of(platform, "sql: SELECT missing FROM orders").text
    assert text.count("no such column: missing") == 2  # the service, and the agent who repeats it


def test_page_shows_the_turns_of_a_thread_in_order(platform: Platform) -> None:
    platform.ask("revenue by country")
    chat_id = platform.control.state().runs[0].chat_id
    platform.ask("and by product?", chatId=chat_id)
    text = page(platform, f"/app/threads/{chat_id}").text
    assert text.index("revenue by country") < text.index("and by product?")


def test_page_of_a_running_thread_reloads_itself(platform: Platform) -> None:
    platform.control.set_breakpoint("after_echo")
    with platform.stream(input="revenue by country"):
        platform.control.wait_for_breakpoint("after_echo")
        path = f"/app/threads/{platform.control.state().runs[0].chat_id}"
        assert 'http-equiv="refresh"' in page(platform, path).text
        platform.control.release("after_echo")
    platform.control.wait_until(lambda state: state.runs[0].status == "finished")
    assert 'http-equiv="refresh"' not in page(platform, path).text


def test_the_overview_lists_everything(platform: Platform) -> None:
    platform.ask("top 5 products")
    post = {"headers": platform.bearer, "timeout": 30}
    base = f"{platform.sandbox.management_url}/v1/deployments/1"
    platform.http.post(f"{base}/dbt-sync", json={"branchName": "nightly/one"}, **post)
    weekly = {"dashboardId": 501, "scheduleType": "WEEKLY", "dayOfWeek": 1, "hour": 7}
    made = platform.http.post(f"{base}/notifications", json={**weekly, "minute": 30}, **post)
    assert made.status_code < 300, made.text
    exported = platform.http.post(
        f"{base}/dashboard-exports", json={"format": "png", "dashboardId": 501}, **post
    ).json()["jobId"]

    text = page(platform).text
    assert "top 5 products" in text
    assert "nightly/one" in text
    assert made.json()["humanReadableSchedule"] in text
    assert exported[:8] in text
    assert "POST /api/v1/deployments/1/notifications" in text
    links = set(re.findall(r'href="(/[^"#]*)"', text))
    assert len(links) > 6
    for link in links:
        assert page(platform, link).status_code == 200, link
    file = page(platform, f"/app/exports/{exported}/file")
    assert file.headers["content-type"] == "image/png"
    assert file.content.startswith(b"\x89PNG")


@pytest.mark.parametrize("kind", ["reports/101", "workbooks/301", "dashboards/501"])
def test_a_sample_resource_has_a_page(platform: Platform, kind: str) -> None:
    text = page(platform, f"/app/{kind}").text
    assert kind.partition("/")[2] in text


@pytest.mark.parametrize(
    "path",
    [
        "/app/threads/none",
        "/app/branches/none",
        "/app/reports/999999",
        "/app/exports/none",
        "/app/user-oauth-tokens/1",
    ],
)
def test_missing_resource_gives_a_not_found_page(platform: Platform, path: str) -> None:
    shown = page(platform, path)
    assert shown.status_code == 404
    assert "Not here" in shown.text


def test_texts_of_users_never_become_markup(platform: Platform) -> None:
    evil = "<script>alert(1)</script><img src=x>\"'"
    text = thread_of(platform, f"sql: SELECT '{evil.replace(chr(39), '')}' AS \"<b>\"").text
    for shown in (text, page(platform).text):
        assert "<script" not in shown
        assert "<img" not in shown
        assert "<b>" not in shown
        assert "&lt;script&gt;" in shown


def test_no_credential_is_shown(platform: Platform) -> None:
    secrets = [platform.sandbox.chat_api_key, platform.sandbox.management_token]
    text = thread_of(platform, f"my key is {secrets[0]} and {secrets[1]}").text
    platform.http.get(f"{platform.sandbox.management_url}/v1/{secrets[1]}", headers=platform.bearer)
    for shown in (text, page(platform).text):
        assert "***" in shown
        assert not any(secret[:20] in shown for secret in secrets)


def test_page_loads_nothing_from_other_hosts(platform: Platform) -> None:
    shown = thread_of(platform, "chart revenue by country")
    policy = shown.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script" not in policy
    assert "unsafe" not in policy
    assert "style=" not in shown.text
    assert re.findall(r'(?:src|href)="(?:https?:)?//', shown.text) == []


def test_page_views_are_not_recorded_as_requests(platform: Platform) -> None:
    """Pages are no part of the service: tests that count requests do not count them."""
    before = platform.control.state().version
    for path in ("/", "/app", "/app/threads/none", "/app/file", "/favicon.ico", "/robots.txt"):
        page(platform, path)
        platform.http.head(platform.sandbox.url + path)
    state = platform.control.state()
    assert (state.version, state.requests) == (before, [])


def test_page_of_a_deleted_branch_shows_a_notice(platform: Platform) -> None:
    platform.control.open_branch("gone")
    assert page(platform, "/app/branches/gone").status_code == 200
    removed = platform.http.delete(
        f"{platform.sandbox.url}/build/api/v1/deployments/1/branches?branchName=gone",
        headers=platform.bearer,
    )
    assert removed.status_code == 200, removed.text
    shown = page(platform, "/app/branches/gone")
    assert shown.status_code == 200
    assert "The branch was deleted 20" in shown.text


def test_page_of_a_deleted_notification_shows_a_notice(platform: Platform) -> None:
    post = {"headers": platform.bearer, "timeout": 30}
    base = f"{platform.sandbox.management_url}/v1/deployments/1/notifications"
    body = {"dashboardId": 501, "scheduleType": "DAILY", "hour": 7, "minute": 30}
    made = platform.http.post(base, json=body, **post).json()["id"]
    assert platform.http.delete(f"{base}/{made}", **post).status_code < 300
    shown = page(platform, f"/app/notifications/{made}")
    assert shown.status_code == 404
    assert f"The notification {made} was deleted 20" in shown.text
