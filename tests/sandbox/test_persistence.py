"""A sandbox continues with the data of the sandbox before it."""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from airflow_provider_platform.client.table.table import operations
from airflow_provider_platform.sandbox import Sandbox
from tests.sandbox.raw_client import Platform, answer

if TYPE_CHECKING:
    from pathlib import Path


def test_restarted_sandbox_keeps_address_credentials_and_data(tmp_path: Path) -> None:
    with Sandbox(kept=tmp_path) as first:
        platform = Platform(first)
        records = platform.ask("revenue by country", messageId="1700000000000123-message")
        created = platform.http.post(
            f"{first.management_url}/v1/deployments/1/dbt-sync",
            json={"branchName": "nightly"},
            headers=platform.bearer,
        )
        first.control.wait_until(lambda state: state.syncs[0].ended_at is not None)
        before = first.control.state()

    with Sandbox(kept=tmp_path) as second:
        assert (second.url, second.connection()) == (first.url, first.connection())
        platform = Platform(second)
        after = second.control.state()
        assert (after.runs, after.syncs) == (before.runs, before.syncs)
        followed = platform.ask("and by product?", chatId=before.runs[0].chat_id)
        assert "product" in answer(followed).lower()
        assert answer(records) != answer(followed)
        status = platform.http.get(
            f"{second.management_url}/v1/deployments/1/dbt-sync/{created.json()['syncJobId']}",
            headers=platform.bearer,
        )
        assert status.json()["status"] == "COMPLETED"


def test_unfinished_work_fails_at_a_restart(tmp_path: Path) -> None:
    with Sandbox(kept=tmp_path, dbt_pace=600) as first:
        platform = Platform(first)
        first.control.set_breakpoint("after_echo")
        with platform.stream(input="revenue by country"):
            first.control.wait_for_breakpoint("after_echo")
            platform.http.post(
                f"{first.management_url}/v1/deployments/1/dbt-sync",
                json={"branchName": "nightly"},
                headers=platform.bearer,
            )
            first.stop()

    with Sandbox(kept=tmp_path) as second:
        state = second.control.state()
        assert [run.status for run in state.runs] == ["failed"]
        assert [sync.status for sync in state.syncs] == ["FAILED"]


def test_restarted_sandbox_takes_another_port_if_its_port_is_in_use(tmp_path: Path) -> None:
    with Sandbox(kept=tmp_path) as first:
        port = int(first.url.rpartition(":")[2])
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        taken.bind(("127.0.0.1", port))
        taken.listen()
        with Sandbox(kept=tmp_path) as second:
            assert second.url != first.url
            assert second.management_token == first.management_token


def test_stored_data_of_another_version_is_ignored(tmp_path: Path) -> None:
    with Sandbox(kept=tmp_path) as first:
        Platform(first).ask("revenue by country")
    memory = tmp_path / "memory"
    memory.write_bytes(b"0" + memory.read_bytes())

    with Sandbox(kept=tmp_path) as second:
        assert second.control.state().runs == []
        assert second.chat_api_key == first.chat_api_key


def test_data_of_every_resource_survives_a_restart(tmp_path: Path) -> None:
    """Each resource's samples too, so that none makes the whole memory unreadable."""
    with Sandbox(kept=tmp_path) as first:
        platform = Platform(first)
        for operation in operations().values():
            path = operation.path.replace("{deploymentId}", "1")
            if operation.method == "GET" and "{" not in path:
                platform.http.get(first.url + path, headers=platform.bearer)
        asked = len(first.control.state().requests)

    with Sandbox(kept=tmp_path) as second:
        assert len(second.control.state().requests) == asked


def test_only_the_owner_can_read_stored_data(tmp_path: Path) -> None:
    with Sandbox(kept=tmp_path):
        pass
    assert {file.stat().st_mode & 0o077 for file in tmp_path.iterdir()} == {0}
