"""Airflow stores no credential: not in logs, metadata database, XComs or arguments."""

from __future__ import annotations

import base64
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.airflow.airflow_api import AirflowApi
    from tests.support.airflow.airflow_server import RunningAirflow
    from tests.support.airflow.fixtures import StartTask
    from tests.support.airflow.sandbox_server import PatientControl

pytestmark = pytest.mark.system

MODES = pytest.mark.parametrize("deferrable", [False, True], ids=["sync", "deferrable"])
WRONG_KEY = "canary-of-a-wrong-chat-key"
WRONG_TOKEN = "canary-of-a-wrong-management-token"
WRONG_SERVICE_TOKEN = "canary-of.a-wrong-service.token"
PROXY_PASSWORD = "canary-of-a-proxy-password"


def files_with(home: Path, text: str) -> list[str]:
    """The files below the folder that hold the text, as it is or in base64."""
    return sorted({str(file.relative_to(home)) for file in _search(home, text)})


def forms_of(text: str) -> list[bytes]:
    """The text as it is and in base64, which depends on where in a group of three bytes it
    begins."""
    plain = text.encode()
    return [plain, *(base64.b64encode(b"x" * shift + plain)[4:-4] for shift in range(3))]


def _search(home: Path, text: str) -> Iterator[Path]:
    forms = forms_of(text)
    for file, content in contents(home):
        if any(form in content for form in forms):
            yield file


def contents(home: Path) -> Iterator[tuple[Path, bytes]]:
    """Every file below the folder with its content, except files that are deleted meanwhile, such
    as SQLite's journal."""
    for file in home.rglob("*"):
        with suppress(FileNotFoundError, IsADirectoryError):
            yield file, file.read_bytes()


def check_nothing_leaked(airflow: RunningAirflow, seen: str, *secrets: str) -> None:
    """`seen` is something that must be found, so that the search is known to see."""
    kept = files_with(airflow.home, seen)
    assert any(name.startswith("airflow.db") for name in kept), kept
    assert any(name.endswith(".log") for name in kept), kept
    for secret in secrets:
        assert len(secret) > 20
        assert files_with(airflow.home, secret) == []


@pytest.fixture
def connect(api: AirflowApi, connection_id: str, sandbox: PatientControl) -> Any:
    """`connect(**overrides)`: change the connection."""
    return lambda **overrides: api.put_connection(connection_id, sandbox.connection(**overrides))


@MODES
def test_airflow_stores_no_secret_after_success_with_an_api_key(
    ask: StartTask,
    sync: StartTask,
    sandbox: PatientControl,
    airflow: RunningAirflow,
    deferrable: bool,
) -> None:
    asking, syncing = ask(deferrable=deferrable), sync(deferrable=deferrable)
    asking.wait("success")
    syncing.wait("success")
    info = sandbox.info()
    secrets = info["chat_api_key"], info["management_token"], info["api_secret"]
    check_nothing_leaked(airflow, asking.result["chat_id"], *secrets)


def test_airflow_stores_no_secret_after_success_with_a_service_token(
    ask: StartTask,
    connect: Any,
    sandbox: PatientControl,
    airflow: RunningAirflow,
) -> None:
    sandbox.set(service_tokens=True)
    token = sandbox.service_token()
    connect(chat_api_key=None, session_settings=None, chat_service_token=token)
    task = ask(deferrable=True)
    task.wait("success")
    check_nothing_leaked(airflow, task.result["chat_id"], token, *token.split(".")[1:])


@MODES
def test_airflow_stores_no_secret_after_refusals_that_quote_it(
    ask: StartTask,
    sync: StartTask,
    sandbox: PatientControl,
    airflow: RunningAirflow,
    deferrable: bool,
) -> None:
    """Refused in the middle: the trigger's error travels to the worker through the database."""
    info = sandbox.info()
    key, token = info["chat_api_key"], info["management_token"]
    sandbox.fault("cut", api="chat", after=4)
    sandbox.fault("jsonrpc", api="chat", has_input=False, message=f"bad key {key}", count=None)
    said = f"bad token {token}"
    sandbox.fault("status", method="GET", path="/dbt-sync/", status=401, message=said, count=None)
    asking = ask(dag_id="ask_once", deferrable=deferrable)
    syncing = sync(dag_id="sync_once", deferrable=deferrable)
    asking.wait("failed")
    syncing.wait("failed")
    assert "bad key ***" in asking.logs()
    assert "bad token ***" in syncing.logs()
    check_nothing_leaked(airflow, sandbox.state().runs[0].chat_id, key, token)


@pytest.mark.parametrize(
    ("overrides", "secret"),
    [
        ({"chat_api_key": WRONG_KEY}, WRONG_KEY),
        (
            {
                "chat_api_key": None,
                "session_settings": None,
                "chat_service_token": WRONG_SERVICE_TOKEN,
            },
            WRONG_SERVICE_TOKEN,
        ),
        ({"proxy": f"http://proxy-user:{PROXY_PASSWORD}@127.0.0.1:1"}, PROXY_PASSWORD),
    ],
    ids=["wrong key", "wrong service token", "proxy that is not there"],
)
def test_airflow_stores_no_secret_after_a_refused_chat(
    ask: StartTask,
    connect: Any,
    airflow: RunningAirflow,
    overrides: dict[str, Any],
    secret: str,
) -> None:
    connect(**overrides, max_attempts=1)
    task = ask(dag_id="ask_once")
    task.wait("failed")
    check_nothing_leaked(airflow, task.run_id, secret)


def test_airflow_stores_no_secret_after_a_wrong_management_token(
    sync: StartTask, connect: Any, airflow: RunningAirflow
) -> None:
    connect(password=WRONG_TOKEN)
    task = sync(dag_id="sync_once")
    task.wait("failed")
    assert "401" in task.logs()
    check_nothing_leaked(airflow, task.run_id, WRONG_TOKEN)
