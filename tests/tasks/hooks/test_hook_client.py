"""A hook keeps one client: opened when first needed, closed with the hook."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.client.errors import PlatformClosedError, PlatformInputError
from airflow_provider_platform.hooks.platform import PlatformHook
from airflow_provider_platform.resources.deployments import get_deployment

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.server import Sandbox

SQL = "SELECT id FROM orders ORDER BY id"
DEPLOYMENT = get_deployment(deployment_id=1)


def connections(sandbox: Sandbox) -> int:
    return len({request.port for request in sandbox.control.state().requests})


def rotate(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox.control.rotate_management_token()
    monkeypatch.setenv("AIRFLOW_CONN_PLATFORM_DEFAULT", json.dumps(sandbox.control.connection()))


def statuses(sandbox: Sandbox) -> list[int | None]:
    return [request.status for request in sandbox.control.state().requests]


def loop_threads() -> set[threading.Thread]:
    """Those of an earlier test may still be ending."""
    return {thread for thread in threading.enumerate() if thread.name == "platform-client"}


def test_calls_and_pages_share_one_connection(platform_sandbox: Sandbox) -> None:
    platform_sandbox.control.set(page_size=1)
    with PlatformHook() as hook:
        assert len(list(hook.iterate("getReports", deployment_id=1, query={"first": 1}))) > 1
        with hook.client() as client:
            assert client.run(DEPLOYMENT).id == 1
        assert hook.run(DEPLOYMENT).id == 1
        assert len(statuses(platform_sandbox)) > 5
        assert connections(platform_sandbox) == 1
        assert hook.chat("revenue by country").answer
    assert connections(platform_sandbox) == 2  # a question has a connection of its own


def test_end_of_the_with_block_closes_the_client(platform_sandbox: Sandbox) -> None:
    before = loop_threads()
    with PlatformHook() as hook:
        hook.run(DEPLOYMENT)
        assert len(loop_threads() - before) == 1
    assert loop_threads() <= before
    hook.close()


def test_a_hook_that_was_closed_opens_again(platform_sandbox: Sandbox) -> None:
    hook = PlatformHook()
    hook.run(DEPLOYMENT)
    hook.close()
    assert hook.run(DEPLOYMENT).id == 1
    hook.close()
    assert connections(platform_sandbox) == 2


def test_threads_share_the_client(platform_sandbox: Sandbox) -> None:
    before = loop_threads()
    with PlatformHook() as hook:
        found: list[int] = []
        threads = [
            threading.Thread(target=lambda: found.append(hook.run(DEPLOYMENT).id)) for _ in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [1] * 8
        assert len(loop_threads() - before) == 1


def test_only_the_first_call_after_a_rotation_uses_the_old_token(
    platform_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    with PlatformHook() as hook:
        hook.run(DEPLOYMENT)
        rotate(platform_sandbox, monkeypatch)
        for _ in range(3):
            hook.run(DEPLOYMENT)
        token = platform_sandbox.control.info()["management_token"]
        assert hook.config.secrets[0] == token
        hook.close()
        hook.run(DEPLOYMENT)
    assert statuses(platform_sandbox) == [200, 401, 200, 200, 200, 200]


def test_parallel_calls_read_a_rotated_token_once(
    platform_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first to read the connection again has read it for the others."""

    async def ask() -> list[int]:
        async with PlatformHook().async_client() as api:
            await api.call("getDeployment")
            rotate(platform_sandbox, monkeypatch)
            answers = await asyncio.gather(*(api.call("getDeployment") for _ in range(5)))
            return [answer["id"] for answer in answers]

    assert asyncio.run(ask()) == [1] * 5


def test_hook_works_in_a_forked_process(platform_sandbox: Sandbox) -> None:
    """As Airflow's processes of tasks are: the child opens a client, the parent's goes on."""
    with PlatformHook() as hook:
        rows = hook.run_sql(SQL)
        next(rows)
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                code = 0 if hook.run(DEPLOYMENT).id == 1 and _is_refused(rows) else 2
                hook.close()
            finally:
                os._exit(code)
        assert os.waitpid(pid, 0)[1] == 0
        assert len(list(rows)) > 100
        assert hook.run(DEPLOYMENT).id == 1


def _is_refused(rows: Any) -> bool:
    try:
        list(rows)
    except PlatformClosedError:
        return True
    return False


def test_folder_id_none_moves_a_workbook_out_of_its_folder(platform_sandbox: Sandbox) -> None:
    with PlatformHook() as hook:
        folder = next(hook.list_folders())["id"]
        hook.update_workbook(301, folder_id=folder)
        assert hook.call("getWorkbook", workbook_id=301)["folderId"] == folder
        hook.update_workbook(301, name="unchanged place")
        assert hook.call("getWorkbook", workbook_id=301)["folderId"] == folder
        hook.update_workbook(301, folder_id=None)
        assert hook.call("getWorkbook", workbook_id=301)["folderId"] is None


def test_call_and_iterate_are_the_same_on_an_event_loop(platform_sandbox: Sandbox) -> None:
    platform_sandbox.control.set(page_size=1)

    async def on_loop() -> tuple[Any, list[Any]]:
        async with PlatformHook().async_client() as api:
            made = await api.call("createFolder", body={"name": "March"})
            return made, [report async for report in api.iterate("getReports", query={"first": 1})]

    made, reports = asyncio.run(on_loop())
    with PlatformHook() as hook:
        assert made in list(hook.iterate("getFolders"))
        assert list(hook.iterate("getReports")) == reports
    assert len(reports) > 1


def test_nothing_is_sent_for_a_call_that_breaks_a_rule(platform_sandbox: Sandbox) -> None:
    with PlatformHook() as hook:
        for wrong in (
            lambda: hook.call("createFoldr"),
            lambda: hook.call("createFolder", body={"nam": "a"}),
            lambda: hook.call("getReport"),
            lambda: hook.call("GET /v1/../x"),
            lambda: hook.iterate("getDeployment"),
            lambda: hook.iterate("getReports", query={"sortBy": "lastViewedAt", "first": 1}),
        ):
            with pytest.raises(PlatformInputError, match="Nothing was sent"):
                wrong()
    assert statuses(platform_sandbox) == []


def test_list_asks_for_a_page_when_its_first_item_is_wanted(platform_sandbox: Sandbox) -> None:
    platform_sandbox.control.set(page_size=1)
    with PlatformHook() as hook:
        reports = hook.iterate("getReports")
        assert statuses(platform_sandbox) == []
        next(reports)
        assert statuses(platform_sandbox) == [200]
        next(reports)
        assert statuses(platform_sandbox) == [200, 200]
