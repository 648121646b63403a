"""A plain HTTP program that speaks to a sandbox and knows nothing of the package's client."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox import Sandbox, SandboxControl

USER = {"externalId": "nightly-pipeline"}
MESSAGE = "1732512345678-message"


class Platform:
    """Speaks to both APIs of a sandbox as a plain HTTP program would."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.control: SandboxControl = sandbox.control
        self.http = httpx.Client(timeout=30, trust_env=False)
        self.key = {"Authorization": f"Api-Key {sandbox.chat_api_key}"}
        self.bearer = {"Authorization": f"Bearer {sandbox.management_token}"}

    def chat(self, operation: str = "stream-chat-state", **body: Any) -> httpx.Response:
        """Call the chat API with the API key and the usual user."""
        body.setdefault("sessionSettings", USER)
        return self.http.post(f"{self.sandbox.chat_url}/{operation}", json=body, headers=self.key)

    def stream(self, **body: Any) -> Any:
        body.setdefault("sessionSettings", USER)
        url = f"{self.sandbox.chat_url}/stream-chat-state"
        return self.http.stream("POST", url, json=body, headers=self.key)

    def ask(self, text: str, **body: Any) -> list[dict[str, Any]]:
        """Ask and return all records."""
        response = self.chat(input=text, **body)
        assert response.status_code == 200, response.text
        return records(response.content)

    def call(self, method: str, path: str, **options: Any) -> httpx.Response:
        """Call the management API below /v1."""
        url = f"{self.sandbox.management_url}/v1/{path}"
        return self.http.request(method, url, headers=self.bearer, **options)


def records(body: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in body.split(b"\n") if line.strip()]


def chat_id(stream: list[dict[str, Any]]) -> str:
    cutoff = next(r for r in stream if r.get("id") == "__cutoff__")
    value: str = cutoff["state"]["chatId"]
    return value


def answer(stream: list[dict[str, Any]]) -> str | None:
    """The final answer, by the rule of the service, with deltas joined."""
    texts: dict[str, str] = {}
    for record in stream:
        path = record.get("graphPath", [])
        if record.get("role") == "assistant" and path[:1] == ["final"] and len(path) <= 2:
            old = texts.get(record["id"], "") if record["isDelta"] else ""
            texts[record["id"]] = old + record["content"]
    return list(texts.values())[-1] if texts else None


def ids(stream: list[dict[str, Any]]) -> list[str]:
    return [record.get("id", "-") for record in stream]


def results(stream: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The parsed results of the SQL tool calls."""
    calls = [r["toolCall"] for r in stream if "result" in r.get("toolCall", {})]
    return [json.loads(c["result"]) for c in calls if c["name"].endswith("SqlApi")]
