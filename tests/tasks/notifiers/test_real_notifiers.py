"""Airflow's notifiers for Slack and Apprise, sending to a server of the test's own.

Their providers have an environment of their own: `make test-notifiers`.
"""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import pytest
from airflow.sdk import DAG

from airflow_provider_platform.notifications.answer import PlatformAnswerNotifier
from airflow_provider_platform.operators.chat import PlatformChatOperator

if TYPE_CHECKING:
    from collections.abc import Iterator

    from airflow_provider_platform.sandbox.server import Sandbox
    from tests.conftest import RunDag

WHY = "the provider is not installed here: make test-notifiers"
slack = pytest.importorskip("airflow.providers.slack.notifications.slack", reason=WHY)
webhook = pytest.importorskip("airflow.providers.slack.notifications.slack_webhook", reason=WHY)
apprise = pytest.importorskip("airflow.providers.apprise.notifications.apprise", reason=WHY)

MENTION = "sql: SELECT '<!channel> @here <https://evil.example|x>'"
TOKEN = "xoxb-a-token-of-slack"


class Receiver(ThreadingHTTPServer):
    """Keeps what is posted and says that all is well, as each of the services would."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.posted: list[tuple[str, Any]] = []
        self.status = 200

    @property
    def port(self) -> int:
        return int(self.server_address[1])


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        form = "urlencoded" in self.headers["Content-Type"]
        said = {k: v[0] for k, v in parse_qs(body).items()} if form else json.loads(body)
        self.server.posted.append((self.path, said))
        answer = b'{"ok": true}' if self.path.startswith("/api/") else b"ok"
        self.send_response(self.server.status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *arguments: Any) -> None:
        pass


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def ask(name: str, sender: Any, prompt: str = "chart revenue by category") -> DAG:
    with DAG(name, schedule=None) as dag:
        PlatformChatOperator(
            task_id="ask", prompt=prompt, on_success_callback=PlatformAnswerNotifier(sender)
        )
    return dag


def blocks_of(posted: Any) -> list[dict[str, Any]]:
    blocks: Any = posted["blocks"]
    return json.loads(blocks) if isinstance(blocks, str) else blocks


@pytest.mark.parametrize("prompt", ["chart revenue by category", MENTION])
def test_slack_gets_the_answer_as_blocks(
    platform_sandbox: Sandbox,
    run_dag: RunDag,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
    prompt: str,
) -> None:
    monkeypatch.setenv(
        "AIRFLOW_CONN_SLACK_API_DEFAULT", json.dumps({"conn_type": "slack", "password": TOKEN})
    )
    address = f"http://127.0.0.1:{receiver.port}/api/"
    run = run_dag(ask("slack", slack.SlackNotifier(channel="#bi", base_url=address), prompt))
    assert run.states == {"ask": "success"}
    [(path, said)] = receiver.posted
    assert path == "/api/chat.postMessage"
    assert said["channel"] == "#bi"
    assert [block["type"] for block in blocks_of(said)][:2] == ["header", "section"]
    assert "<!" not in json.dumps(blocks_of(said))
    assert "<!" not in said["text"]
    assert said["unfurl_links"] is False
    if prompt != MENTION:
        assert "█" in json.dumps(blocks_of(said), ensure_ascii=False)


def test_slack_webhook_gets_the_same_blocks(
    platform_sandbox: Sandbox,
    run_dag: RunDag,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connection = {
        "conn_type": "slackwebhook",
        "schema": "http",
        "host": f"127.0.0.1:{receiver.port}/services",
        "password": "T000/B000/SECRETSECRET",
    }
    monkeypatch.setenv("AIRFLOW_CONN_SLACK_DEFAULT", json.dumps(connection))
    run_dag(ask("webhook", webhook.SlackWebhookNotifier(text="")))
    run_dag(ask("titled", webhook.SlackWebhookNotifier(text="{{ platform_answer.title }}")))
    [(path, said), (_, titled)] = receiver.posted
    assert titled["text"] == "titled.ask: answer"
    assert path == "/services/T000/B000/SECRETSECRET"
    assert said["blocks"][0]["text"]["text"] == "webhook.ask: answer"
    assert "Office" in said["text"]


def test_refused_webhook_does_not_affect_the_task_or_show_its_address(
    platform_sandbox: Sandbox,
    run_dag: RunDag,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    connection = {
        "conn_type": "slackwebhook",
        "schema": "http",
        "host": f"127.0.0.1:{receiver.port}/services",
        "password": "T000/B000/SECRETSECRET",
    }
    monkeypatch.setenv("AIRFLOW_CONN_SLACK_DEFAULT", json.dumps(connection))
    receiver.status = 403
    run = run_dag(ask("refused", webhook.SlackWebhookNotifier(text="")))
    assert run.states == {"ask": "success"}
    said = capfd.readouterr()
    assert "SlackWebhookNotifier could not send" in said.out + said.err
    assert "SECRETSECRET" not in said.out + said.err


def test_apprise_gets_markdown_and_the_picture(
    platform_sandbox: Sandbox,
    run_dag: RunDag,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    service = {"path": f"json://127.0.0.1:{receiver.port}/apprise", "tag": "all"}
    connection = {"conn_type": "apprise", "extra": {"config": service}}
    monkeypatch.setenv("AIRFLOW_CONN_APPRISE_DEFAULT", json.dumps(connection))
    run_dag(ask("apprise", apprise.AppriseNotifier(body="")))
    [(_, said)] = receiver.posted
    assert said["title"] == "apprise.ask: answer"
    assert "Office" in said["message"]
    [picture] = said["attachments"]
    assert picture["filename"] == "chart-1.png"
