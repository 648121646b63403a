"""The demo's connection in the metadata database, and what a person changes of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.sandbox.demo.stored_connection import CONN_ID, store_connection
from airflow_provider_platform.sandbox.server import Sandbox

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def _no_connection(airflow_db: None) -> Iterator[None]:
    yield
    _change(lambda session, row: session.delete(row))


def _change(do: Any) -> Any:
    from airflow.models import Connection
    from airflow.utils.session import create_session

    with create_session() as session:
        row = session.query(Connection).filter_by(conn_id=CONN_ID).one()
        return do(session, row)


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
    store_connection(file)


@pytest.fixture
def wanted() -> dict[str, Any]:
    sandbox = Sandbox()
    sandbox.url = "http://127.0.0.1:4711"
    return sandbox.connection()


def test_it_is_stored_as_a_form_would(tmp_path: Path, wanted: dict[str, Any]) -> None:
    store(tmp_path, wanted)
    assert stored() == {**wanted, "port": 443}


def test_a_sandbox_elsewhere_is_followed_and_settings_stay(
    tmp_path: Path, wanted: dict[str, Any]
) -> None:
    store(tmp_path, wanted)

    def by_a_person(_: Any, row: Any) -> None:
        extra = row.extra_dejson | {"request_timeout": 5, "session_settings": {"externalId": "ann"}}
        row.set_extra(json.dumps(extra))

    _change(by_a_person)
    moved = json.loads(json.dumps(wanted).replace("4711", "4712"))
    store(tmp_path, moved)

    kept = {"request_timeout": 5, "session_settings": {"externalId": "ann"}}
    assert stored() == {**moved, "port": 443, "extra": moved["extra"] | kept}


def test_a_persons_own_connection_stays(tmp_path: Path, wanted: dict[str, Any]) -> None:
    store(tmp_path, wanted)

    def own(_: Any, row: Any) -> None:
        row.description, row.host = "mine", "https://acme.example.com/api"

    _change(own)
    store(tmp_path, json.loads(json.dumps(wanted).replace("4711", "4712")))
    assert stored()["host"] == "https://acme.example.com/api"
