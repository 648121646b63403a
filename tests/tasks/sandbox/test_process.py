"""The sandbox as a program, as a pytest fixture and under load."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import httpx
import pytest

from airflow_provider_platform.sandbox import Sandbox, SandboxControl
from tests.support.raw_client import USER, Platform, answer, records

if TYPE_CHECKING:
    from pathlib import Path

MODULE = [sys.executable, "-m", "airflow_provider_platform.sandbox"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_program_serves_and_stops_cleanly(tmp_path: Path, number: signal.Signals) -> None:
    ready = tmp_path / "ready.json"
    command = [*MODULE, "--pace", "0.001", "--tenant", "described"]
    command += ["--build-seconds", "7", "--ready-file", str(ready)]
    program = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert program.stdout is not None
        output = ""
        while "AIRFLOW_CONN_PLATFORM_DEFAULT" not in output:
            line = program.stdout.readline()
            assert line, program.communicate()
            output += line
        control = SandboxControl(output.split("Sandbox at ")[1].split()[0])
        details = control.info()
        assert json.loads(output.split("DEFAULT='")[1].split("'")[0]) == details["connection"]
        assert json.loads(ready.read_text()) == details
        assert ready.stat().st_mode & 0o077 == 0
        control.set(pace=0)
        response = httpx.post(
            f"{details['chat_url']}/stream-chat-state",
            json={"input": "revenue by country", "sessionSettings": USER},
            headers={"Authorization": f"Api-Key {details['chat_api_key']}"},
            trust_env=False,
        )
        assert answer(records(response.content))
        settings = control.settings()
        assert (settings["tenant"], settings["build_seconds"]) == ("described", 7)
        assert control.state().runs[0].status == "finished"
        control.set_breakpoint("after_echo")
        with httpx.stream(
            "POST",
            f"{details['chat_url']}/stream-chat-state",
            json={"input": "revenue by country", "sessionSettings": USER},
            headers={"Authorization": f"Api-Key {details['chat_api_key']}"},
            trust_env=False,
        ) as stream:
            control.wait_for_breakpoint("after_echo")
            program.send_signal(number)
            _, errors = program.communicate(timeout=30)
            with pytest.raises(httpx.RemoteProtocolError):
                stream.read()
        assert (program.returncode, errors) == (0, "")
        assert not ready.exists()
    finally:
        program.kill()
        program.communicate()


def test_port_in_use_ends_the_program_with_an_error() -> None:
    with Sandbox() as sandbox:
        port = sandbox.url.rsplit(":", 1)[1]
        second = subprocess.run(
            [*MODULE, "--port", port], capture_output=True, text=True, check=False
        )
        assert second.returncode == 1
        assert "cannot listen on 127.0.0.1" in second.stderr
    with pytest.raises(ValueError, match="loopback only"):
        Sandbox(host="0.0.0.0")


def test_connection_fields_can_be_replaced(server: Sandbox) -> None:
    connection = server.connection(chat_api_key=None, chat_service_token="t", port=443, host="h")
    assert (connection["host"], connection["port"]) == ("h", 443)
    assert connection["extra"]["chat_service_token"] == "t"
    assert "chat_api_key" not in connection["extra"]
    assert json.loads(server.connection_json()) == server.control.info()["connection"]


def test_fixture_for_dag_authors_works(tmp_path: Path, pytestconfig: pytest.Config) -> None:
    (tmp_path / "test_dag.py").write_text(
        "import json, os\n"
        "def test_first(platform_sandbox):\n"
        "    connection = json.loads(os.environ['AIRFLOW_CONN_PLATFORM_DEFAULT'])\n"
        "    assert connection['host'] == platform_sandbox.management_url\n"
        "    platform_sandbox.control.set(pace=5)\n"
        "def test_second(platform_sandbox):\n"
        "    assert platform_sandbox.control.settings()['pace'] == 0\n"
        "def test_without():\n"
        "    assert 'AIRFLOW_CONN_PLATFORM_DEFAULT' not in os.environ\n"
    )
    plugin = "airflow_provider_platform.sandbox.pytest_plugin"
    command = [sys.executable, "-m", "pytest", "-q", "-p", plugin, "-p", "no:cacheprovider"]
    environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
    environment["PYTHONPATH"] = str(pytestconfig.rootpath)
    environment.pop("AIRFLOW_CONN_PLATFORM_DEFAULT", None)
    run = subprocess.run(
        [*command, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
        cwd=tmp_path,
    )
    assert "3 passed" in run.stdout, run.stdout + run.stderr


def test_the_body_of_an_answer_does_not_wait_for_an_acknowledgement_of_its_headers() -> None:
    with Sandbox() as sandbox, httpx.Client(base_url=sandbox.url, trust_env=False) as client:
        client.get("/")
        assert sandbox._server is not None
        [connection] = sandbox._server.server_state.connections
        accepted = connection.transport.get_extra_info("socket")
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_importing_the_plugin_loads_nothing_else() -> None:
    code = (
        "import sys, pytest\n"
        "before = set(sys.modules)\n"
        "import airflow_provider_platform.sandbox.pytest_plugin\n"
        "new = {name.split('.')[0] for name in set(sys.modules) - before}\n"
        "print(sorted(new - set(sys.stdlib_module_names)))\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "['airflow_provider_platform']"


def test_sandbox_serves_300_streams_at_once(platform: Platform) -> None:
    platform.control.set(pace=0.01)
    platform.control.fault("cut", after=7, nth=2, count=100)

    async def one(client: httpx.AsyncClient, number: int) -> str | None:
        body = {"input": "revenue by country", "sessionSettings": USER}
        url = f"{platform.sandbox.chat_url}/stream-chat-state"
        try:
            response = await client.post(url, json=body, headers=platform.key)
        except httpx.RemoteProtocolError:
            return None
        return answer(records(response.content))

    async def all_of_them() -> list[str | None]:
        limits = httpx.Limits(max_connections=None)
        async with httpx.AsyncClient(timeout=120, limits=limits, trust_env=False) as client:
            return await asyncio.gather(*(one(client, number) for number in range(300)))

    answers = asyncio.run(all_of_them())
    assert answers.count(None) == 100
    assert len(set(answers) - {None}) == 1
    state = platform.control.wait_until(
        lambda state: all(run.status == "finished" for run in state.runs), timeout=120
    )
    assert len(state.runs) == 300
