"""The settings that the examples need in the metadata database, and those that a user changed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.sandbox.demo.stored_settings import (
    CONN_ID,
    NEXT_CONN_ID,
    POOL,
    store_settings,
)
from airflow_provider_platform.sandbox.server import Sandbox

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def _nothing_stored(airflow_db: None) -> Iterator[None]:
    yield
    for conn_id in (CONN_ID, NEXT_CONN_ID):
        _change(lambda session, row: session.delete(row), conn_id)
    _with_pool(lambda session, row: session.delete(row))


def _change(do: Any, conn_id: str = CONN_ID) -> Any:
    from airflow.models import Connection
    from airflow.utils.session import create_session

    with create_session() as session:
        row = session.query(Connection).filter_by(conn_id=conn_id).one()
        return do(session, row)


def _with_pool(do: Any) -> Any:
    from airflow.models.pool import Pool
    from airflow.utils.session import create_session

    with create_session() as session:
        return do(session, session.query(Pool).filter_by(pool=POOL).one())


def stored() -> dict[str, Any]:
    return _change(
        lambda _, row: {
            "conn_type": row.conn_type,
            "host": row.host,
            "password": row.password,
            "port": row.port,
            "extra": row.extra_dejson,
        }
    )


def store(folder: Path, connection: dict[str, Any]) -> None:
    file = folder / "connection.json"
    file.write_text(json.dumps(connection))
    store_settings(file)


@pytest.fixture
def sandbox_connection() -> dict[str, Any]:
    sandbox = Sandbox()
    sandbox.url = "http://127.0.0.1:4711"
    return sandbox.connection()


def test_connection_is_stored_as_the_form_stores_it(
    tmp_path: Path, sandbox_connection: dict[str, Any]
) -> None:
    store(tmp_path, sandbox_connection)
    assert stored() == {**sandbox_connection, "port": 443}


def test_connection_gets_the_sandboxs_new_address_and_keeps_settings(
    tmp_path: Path, sandbox_connection: dict[str, Any]
) -> None:
    store(tmp_path, sandbox_connection)

    def by_a_person(_: Any, row: Any) -> None:
        extra = row.extra_dejson | {"request_timeout": 5, "session_settings": {"externalId": "ann"}}
        row.set_extra(json.dumps(extra))

    _change(by_a_person)
    moved = json.loads(json.dumps(sandbox_connection).replace("4711", "4712"))
    store(tmp_path, moved)

    kept = {"request_timeout": 5, "session_settings": {"externalId": "ann"}}
    assert stored() == {**moved, "port": 443, "extra": moved["extra"] | kept}


def test_connection_that_a_user_changed_is_kept(
    tmp_path: Path, sandbox_connection: dict[str, Any]
) -> None:
    store(tmp_path, sandbox_connection)

    def own(_: Any, row: Any) -> None:
        row.description, row.host = "mine", "https://acme.example.com/api"

    _change(own)
    store(tmp_path, json.loads(json.dumps(sandbox_connection).replace("4711", "4712")))
    assert stored()["host"] == "https://acme.example.com/api"


def test_connection_with_a_new_key_still_leads_to_the_sandbox(
    tmp_path: Path, sandbox_connection: dict[str, Any]
) -> None:
    store(tmp_path, sandbox_connection)
    assert _change(lambda _, row: row.host, NEXT_CONN_ID) == sandbox_connection["host"]


def test_pool_counts_deferred_tasks_and_keeps_a_changed_size(
    tmp_path: Path, sandbox_connection: dict[str, Any]
) -> None:
    store(tmp_path, sandbox_connection)
    assert _with_pool(lambda _, row: (row.slots, row.include_deferred)) == (4, True)

    def smaller(_: Any, row: Any) -> None:
        row.slots = 1

    _with_pool(smaller)
    store(tmp_path, sandbox_connection)
    assert _with_pool(lambda _, row: row.slots) == 1
