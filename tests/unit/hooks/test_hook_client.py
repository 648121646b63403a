"""A hook keeps one client: opened when first needed, closed with the hook."""

from __future__ import annotations

import asyncio
import gc
import inspect
import json
import os
import re
import threading
import time
from typing import TYPE_CHECKING, Any, get_type_hints

import pytest

from airflow_provider_platform.client.errors import PlatformClosedError, PlatformInputError
from airflow_provider_platform.client.management.deployments.deployments import get_deployment
from airflow_provider_platform.client.management.embed.sessions import (
    GenerateSession,
    generate_embed_session,
)
from airflow_provider_platform.client.management.reports.reports import (
    ReportsQuery,
    list_reports,
)
from airflow_provider_platform.client.management.workbooks.workbooks import publish_workbook
from airflow_provider_platform.hooks.platform import PlatformHook

if TYPE_CHECKING:
    from collections.abc import Callable

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


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_calls_and_pages_share_one_connection(platform_sandbox: Sandbox) -> None:
    platform_sandbox.control.set(page_size=1)
    with PlatformHook() as hook:
        reports = list_reports(deployment_id=1, query=ReportsQuery.build(first=1))
        assert len(list(hook.iterate(reports))) > 1
        with hook.client() as client:
            assert client.run(DEPLOYMENT).id == 1
        assert hook.run(DEPLOYMENT).id == 1
        assert len(statuses(platform_sandbox)) > 5
        assert connections(platform_sandbox) == 1
        assert hook.chat("revenue by country").answer
    assert connections(platform_sandbox) == 2  # a question has a connection of its own


def test_hook_opens_no_connection_before_the_first_call(platform_sandbox: Sandbox) -> None:
    before = loop_threads()
    with PlatformHook():
        assert loop_threads() <= before
    assert statuses(platform_sandbox) == []


def test_end_of_the_with_block_closes_the_client(platform_sandbox: Sandbox) -> None:
    before = loop_threads()
    with PlatformHook() as hook:
        hook.run(DEPLOYMENT)
        assert len(loop_threads() - before) == 1
    assert loop_threads() <= before
    hook.close()


def test_deleting_the_hook_closes_the_client(platform_sandbox: Sandbox) -> None:
    before = loop_threads()
    hook = PlatformHook()
    hook.run(DEPLOYMENT)
    del hook
    gc.collect()
    wait_for(lambda: loop_threads() <= before)


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
        async with PlatformHook() as hook:
            await hook.arun(DEPLOYMENT)
            rotate(platform_sandbox, monkeypatch)
            answers = await asyncio.gather(*(hook.arun(DEPLOYMENT) for _ in range(5)))
            return [answer.id for answer in answers]

    assert asyncio.run(ask()) == [1] * 5


def test_calls_on_one_loop_share_a_connection(
    platform_sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def ask(hook: PlatformHook) -> None:
        await hook.arun(DEPLOYMENT)
        rotate(platform_sandbox, monkeypatch)
        await hook.arun(DEPLOYMENT)
        await hook.arun(DEPLOYMENT)

    hook = PlatformHook()
    asyncio.run(ask(hook))
    assert connections(platform_sandbox) == 1
    assert statuses(platform_sandbox).count(401) == 1
    asyncio.run(ask(hook))
    assert connections(platform_sandbox) == 2
    assert statuses(platform_sandbox).count(401) == 2


@pytest.mark.filterwarnings("error")
def test_a_loop_that_ends_closes_its_client(platform_sandbox: Sandbox) -> None:
    clients: list[Any] = []

    async def ask(hook: PlatformHook) -> None:
        await hook.arun(DEPLOYMENT)
        clients.append(await hook.open_client_on_loop())

    asyncio.run(ask(PlatformHook()))
    assert clients[0].closed


def test_unused_hook_is_closed_on_its_loop(platform_sandbox: Sandbox) -> None:
    async def ask() -> None:
        hook = PlatformHook()
        await hook.arun(DEPLOYMENT)
        connections = (await hook.open_client_on_loop())._transport.connections
        assert not connections.closed
        del hook
        gc.collect()
        async with asyncio.timeout(30):
            while not connections.closed:  # noqa: ASYNC110 - nothing else tells
                await asyncio.sleep(0.01)

    asyncio.run(ask())


def test_a_hook_closes_the_clients_of_all_loops(platform_sandbox: Sandbox) -> None:
    async def ask() -> None:
        hook = PlatformHook()
        async with hook:
            hook.run(DEPLOYMENT)
            await hook.arun(DEPLOYMENT)
            client = await hook.open_client_on_loop()
        assert client.closed
        with pytest.raises(PlatformClosedError):
            await client.run(DEPLOYMENT)

    before = loop_threads()
    asyncio.run(ask())
    assert loop_threads() <= before


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


def test_hook_works_while_a_loop_runs_in_its_thread(platform_sandbox: Sandbox) -> None:
    """As in a notebook."""

    async def cell() -> int:
        with PlatformHook() as hook:
            return hook.run(DEPLOYMENT).id

    assert asyncio.run(cell()) == 1


def test_run_refuses_anything_but_operations_and_programs(platform_sandbox: Sandbox) -> None:
    def operation() -> None:
        """No operation."""

    wrong: list[tuple[Any, str]] = [
        (get_deployment, "get_deployment was not called. Write run(get_deployment("),
        (operation, "run needs an operation, for example run(get_report(report_id=101))"),
        ("/v1/reports", "or a program (a generator that makes several calls), not str"),
    ]
    with PlatformHook() as hook:
        for work, words in (*wrong, (hook.list_reports(), "not chain")):
            with pytest.raises(PlatformInputError, match=re.escape(words)):
                hook.run(work)
            with pytest.raises(PlatformInputError, match=re.escape(words)):
                asyncio.run(hook.arun(work))
        for walk in (hook.iterate, hook.aiterate):
            with pytest.raises(PlatformInputError, match="does not return a list"):
                walk(get_deployment(deployment_id=1))  # type: ignore[arg-type]
    assert statuses(platform_sandbox) == []


def test_list_has_the_same_items_with_and_without_an_event_loop(platform_sandbox: Sandbox) -> None:
    platform_sandbox.control.set(page_size=1)
    listing = list_reports(query=ReportsQuery(first=1))

    async def read() -> tuple[list[int], list[int]]:
        async with PlatformHook() as hook, hook.async_client() as client:
            by_hook = [report.id async for report in hook.aiterate(listing)]
            return by_hook, [report.id async for report in client.iterate(listing)]

    by_hook, by_client = asyncio.run(read())
    with PlatformHook() as hook, hook.client() as client:
        without = [report.id for report in client.iterate(listing)]
        assert without == [report.id for report in hook.iterate(listing)]
    assert by_hook == by_client == without
    assert len(without) > 1


def test_async_list_asks_for_a_page_when_its_first_item_is_wanted(
    platform_sandbox: Sandbox,
) -> None:
    platform_sandbox.control.set(page_size=1)

    async def first() -> int:
        async with PlatformHook() as hook:
            items = hook.aiterate(list_reports(query=ReportsQuery(first=1)))
            return (await anext(items)).id

    asyncio.run(first())
    assert statuses(platform_sandbox) == [200]


def test_hook_methods_have_type_hints_that_can_be_evaluated() -> None:
    methods = [
        inspect.unwrap(member)
        for _, member in inspect.getmembers(PlatformHook, inspect.isroutine)
        if str(getattr(inspect.unwrap(member), "__module__", "")).startswith("airflow_provider_")
    ]
    assert {method.__name__ for method in methods} > {"run", "chat", "run_sql", "list_reports"}
    for method in methods:
        get_type_hints(method)


def test_folder_id_none_moves_a_workbook_out_of_its_folder(platform_sandbox: Sandbox) -> None:
    with PlatformHook() as hook:
        folder = next(iter(hook.list_folders())).id
        hook.update_workbook(301, folder_id=folder)
        assert hook.get_workbook(301).folder_id == folder
        hook.update_workbook(301, name="unchanged place")
        assert hook.get_workbook(301).folder_id == folder
        hook.update_workbook(301, folder_id=None)
        assert hook.get_workbook(301).folder_id is None


def test_embed_session_and_publication_take_their_ids_from_the_call(
    platform_sandbox: Sandbox,
) -> None:
    with PlatformHook() as hook:
        session = GenerateSession(external_id="somebody")
        assert hook.run(generate_embed_session(body=session)).session_id
        assert hook.run(publish_workbook(workbook_id=301)).public_id
