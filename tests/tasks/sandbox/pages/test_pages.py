"""What the sandbox's pages show, and what they must not do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import httpx

    from tests.support.raw_client import Platform


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


def test_page_of_an_unknown_thread_is_not_found(platform: Platform) -> None:
    shown = page(platform, "/app/threads/gone")
    assert (shown.status_code, "gone" in shown.text) == (404, True)


def test_page_gets_its_style_from_the_sandbox(platform: Platform) -> None:
    address = re.findall(r'href="([^"]+\.css)"', page(platform).text)[0]
    style = page(platform, address)
    assert style.headers["content-type"].startswith("text/css")
    assert "{" in style.text


def test_a_failed_query_says_why(platform: Platform) -> None:
    text = thread_of(platform, "sql: SELECT missing FROM orders").text
    assert text.count("no such column: missing") == 2  # the service, and the agent who repeats it


def test_page_of_a_running_thread_reloads_itself(platform: Platform) -> None:
    platform.control.set_breakpoint("after_echo")
    with platform.stream(input="revenue by country"):
        platform.control.wait_for_breakpoint("after_echo")
        path = f"/app/threads/{platform.control.state().runs[0].chat_id}"
        assert 'http-equiv="refresh"' in page(platform, path).text
        platform.control.release("after_echo")
    platform.control.wait_until(lambda state: state.runs[0].status == "finished")
    assert 'http-equiv="refresh"' not in page(platform, path).text


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
