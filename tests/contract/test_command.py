"""The command of the contract check: its exit status, and the documents that it reads."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.contract import __main__ as command
from airflow_provider_platform.contract.__main__ import main
from airflow_provider_platform.contract.document import NotADocumentError, read_document
from tests.contract.small_contract import (
    create_thing,
    document,
)

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("change", "options", "status", "said"),
    [
        (None, [], 0, "0 breaks, 0 additions"),
        ("addition", [], 0, "0 breaks, 1 additions"),
        ("addition", ["--strict"], 1, "0 breaks, 1 additions"),
        ("break", [], 1, "1 breaks, 1 additions"),
    ],
)
def test_command_fails_if_a_difference_is_a_break(
    change: str | None,
    options: list[str],
    status: int,
    said: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(command, "declared_endpoints", lambda: [create_thing])
    against = document()
    if change is not None:
        against["paths"]["/api/v1/added"] = {"get": {}}
    if change == "break":
        del against["components"]["schemas"]["ThingInput"]["properties"]["size"]
    path = tmp_path / "openapi.json"
    path.write_text(json.dumps(against), encoding="utf-8")

    assert main([str(path), *options]) == status
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].endswith(said)
    kinds = [line.split(" | ")[0] for line in lines[:-1]]
    assert kinds == {None: [], "addition": ["addition"], "break": ["break", "addition"]}[change]


def test_command_fails_if_there_are_findings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "openapi.json"
    path.write_text(json.dumps(document()), encoding="utf-8")

    assert main([str(path), "--all"]) == 1
    assert "POST /v1/things/{thingId} | operation | not declared" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["", "[]", "a: [", "openapi: 3.1.0", "<!doctype html>"])
def test_file_that_is_not_a_document_is_reported(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "openapi.yaml"
    path.write_text(text, encoding="utf-8")

    with pytest.raises(NotADocumentError, match=r"openapi\.yaml"):
        read_document(str(path))
    assert main([str(path)]) == 2
    assert main([str(tmp_path / "missing.yaml")]) == 2
    assert "cannot be read" in capsys.readouterr().err


def test_an_address_needs_its_token(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("PLATFORM_TOKEN", raising=False)

    assert main(["https://acme.example.com/api"]) == 2
    assert "token" in capsys.readouterr().err


def test_the_document_that_a_tenant_serves_is_read_with_the_token(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = []

    class Tenant(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append((self.path, self.headers["Authorization"]))
            body = json.dumps(document()).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            """Keep the test's output clean."""

    monkeypatch.setenv("PLATFORM_TOKEN", "canary-token")
    with ThreadingHTTPServer(("127.0.0.1", 0), Tenant) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            assert main([f"http://127.0.0.1:{server.server_port}"]) == 1
        finally:
            server.shutdown()

    assert asked == [("/api/v1/spec", "Bearer canary-token")]
    shown = capsys.readouterr()
    assert "canary-token" not in shown.out + shown.err
