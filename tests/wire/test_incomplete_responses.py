"""A response is complete only at the protocol's own end: not at an error, a close or a flush."""

from __future__ import annotations

import gzip
import zlib
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import SecretStr
from pydantic.alias_generators import to_snake

from airflow_provider_platform.client.errors import (
    PlatformApiError,
    PlatformProtocolError,
    PlatformServerError,
    PlatformTransportError,
)
from airflow_provider_platform.client.operation import operation
from airflow_provider_platform.client.operations_table import operations
from airflow_provider_platform.client.platform_client import PlatformClient
from airflow_provider_platform.resources.exports import download_dashboard_export
from airflow_provider_platform.resources.sql.query import SqlQuery, run_sql
from airflow_provider_platform.resources.sql.response import SqlRows
from tests.support.wire.calls import GET, POST, Run, config_for, reading
from tests.support.wire.http_server import (
    Answer,
    Exchange,
    answer,
    serving,
    streamed,
)
from tests.support.wire.spoiled_tls import SpoilableTls
from tests.wire.test_certificates import authority, bundle, certified

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import trustme

    from airflow_provider_platform.client.config import PlatformConfig
    from airflow_provider_platform.client.platform_client import Events

__all__ = ["authority", "bundle"]

SCHEMA = b'{"schema":[{"name":"n","column_type":"String"}]}\n'
THREE = b'{"data":[["1"],["2"],["3"]]}\n'
TEN = THREE + b'{"data":[["4"],["5"],["6"],["7"],["8"],["9"],["10"]]}\n'


def alert(exchange: Exchange) -> None:
    exchange.connection.send_alert()  # type: ignore[attr-defined]


def bad_record(exchange: Exchange) -> None:
    exchange.connection.send_bad_record()  # type: ignore[attr-defined]


SPOILED = pytest.mark.parametrize("spoil", [alert, bad_record], ids=["alert", "bad record"])


def read_rows(config: PlatformConfig) -> tuple[list[Any], SqlRows]:
    """The rows that come, and what is known of them; it raises what reading them raises."""
    with PlatformClient(config) as client:
        rows = SqlRows(lambda: begin(client), why_cut=lambda _: None)
        return list(rows), rows


def begin(client: PlatformClient) -> Events[Any]:
    return client.events(program(client))


def program(client: PlatformClient) -> Any:
    query = SqlQuery(
        "SELECT n FROM t",
        deployment_id=None,
        deadline=client.clock() + 60.0,
        token=SecretStr("canary-data"),
    )
    return lambda api: run_sql(api, query)


@pytest.fixture
def rows_of() -> Callable[..., Any]:
    """The rows of a query of a server."""
    return lambda server, **fields: read_rows(config_for(server, data_api_url=server.url, **fields))


def open_ended(body: bytes, headers: bytes = b"") -> Answer:
    """A body that ends where the connection does."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n%s\r\n"
    return lambda exchange: exchange.send(head % headers + body)


@SPOILED
@pytest.mark.parametrize("at", ["before the head", "in the body"])
def test_broken_tls_in_a_response_is_a_broken_connection(
    run: Run, authority: trustme.CA, bundle: Path, spoil: Answer, at: str
) -> None:
    """What may be repeated is; what must not be sent twice is sent once and fails."""

    def respond(exchange: Exchange) -> None:
        if at == "in the body":
            answer(body=b"[1", length=3)(exchange)
        spoil(exchange)

    tls: Any = SpoilableTls(certified(authority))
    with serving(respond, respond, answer(body=b"[1]"), respond, tls=tls) as server:
        config = config_for(server, ca_bundle=str(bundle))
        assert run(config, GET) == [1]
        with pytest.raises(PlatformTransportError, match="the connection broke") as caught:
            run(config, POST)
    assert caught.value.processed is None
    assert len(server.requests) == 4


def test_rows_that_show_no_end_may_be_incomplete(rows_of: Callable[..., Any]) -> None:
    with serving(open_ended(SCHEMA + THREE)) as server:
        came, rows = rows_of(server)
    assert (came, rows.truncated) == ([["1"], ["2"], ["3"]], True)
    assert "closed after 3 rows" in rows.why_truncated


GZIP = b"Content-Encoding: gzip\r\n"


@pytest.mark.parametrize("size", [1, 7, 10**6])
def test_compressed_result_in_several_members_is_read_whole(
    rows_of: Callable[..., Any], size: int
) -> None:
    """httpx would drop the rows of the second member."""
    members = (SCHEMA + THREE, b"", TEN[len(THREE) :])
    body = b"".join(gzip.compress(member, mtime=0) for member in members)
    pieces = [body[at : at + size] for at in range(0, len(body), size)]
    with serving(streamed(*pieces, headers=GZIP)) as server:
        came, rows = rows_of(server)
    assert (len(came), rows.truncated) == (10, False)


@pytest.mark.parametrize(
    "more", [b"?", b"??", b"\0", gzip.compress(THREE)[:-1]], ids=["one", "two", "zero", "cut"]
)
def test_compressed_result_that_ends_in_no_whole_member_is_broken(
    rows_of: Callable[..., Any], more: bytes
) -> None:
    respond = streamed(gzip.compress(SCHEMA + THREE), more, headers=GZIP)
    with serving(respond) as server, pytest.raises(PlatformTransportError, match="connection brok"):
        rows_of(server)


@pytest.mark.parametrize("framing", [streamed, open_ended])
def test_compressed_result_that_is_cut_anywhere_is_broken(
    rows_of: Callable[..., Any], framing: Any
) -> None:
    body = gzip.compress(SCHEMA + THREE, mtime=0)
    for size in (1, 11, len(body) // 2, len(body) - 9, len(body) - 1):
        cut = pytest.raises(PlatformTransportError, match="ends inside its compressed data")
        with serving(framing(body[:size], headers=GZIP)) as server, cut:
            rows_of(server, max_attempts=1)


@pytest.mark.parametrize("framing", [streamed, open_ended])
def test_compressed_result_cut_at_a_flush_is_a_broken_connection(
    rows_of: Callable[..., Any], framing: Any
) -> None:
    """Whatever marks the end of the body: its content has an end of its own."""
    packer = zlib.compressobj(wbits=31)
    body = packer.compress(SCHEMA + THREE) + packer.flush(zlib.Z_SYNC_FLUSH)
    cut = pytest.raises(PlatformTransportError, match="ends inside its compressed data")
    with serving(framing(body, headers=GZIP)) as server, cut:
        rows_of(server)


@pytest.mark.parametrize(
    ("body", "value"), [(b'{"a": 1}', {"a": 1}), (b"[1]", [1]), (b'"a"', "a"), (b"null", None)]
)
def test_json_that_shows_its_end_is_complete(run: Run, body: bytes, value: Any) -> None:
    with serving(open_ended(body)) as server:
        assert run(config_for(server), GET) == value


@pytest.mark.parametrize("body", [b"12", b"", b"1.5"])
def test_response_that_shows_no_end_may_be_cut(run: Run, body: bytes) -> None:
    with serving(open_ended(body)) as server, pytest.raises(PlatformTransportError, match="be cut"):
        run(config_for(server), POST)
    with serving(answer(body=body)) as server:
        run(config_for(server), POST)


DOWNLOADS = [name for name, row in operations().items() if row.media]


@pytest.mark.parametrize("name", DOWNLOADS)
@pytest.mark.parametrize(
    ("said", "media"),
    [
        (b'{"error": "no disk"}', "application/json"),
        (b'{"error": "no disk"}', "application/pdf"),
        (b'"no disk"', "application/problem+json"),
    ],
)
def test_json_instead_of_a_file_is_an_error(run: Run, name: str, said: bytes, media: str) -> None:
    row = operations()[name]
    assert not any("json" in known for known in row.media)
    ids = {to_snake(one): 7 for one in row.ids}
    with (
        serving(answer(body=said, headers={"Content-Type": media})) as server,
        pytest.raises(PlatformProtocolError, match="JSON instead of the file: no disk"),
    ):
        run(config_for(server), operation(name, **ids))


def test_file_that_shows_no_end_is_an_error(run: Run) -> None:
    export = download_dashboard_export(deployment_id=7, job_id="j")
    file = b"%PDF-1.7 first page"
    pdf = {"Content-Type": "application/pdf"}
    with serving(open_ended(file), answer(body=file, headers=pdf)) as server:
        assert run(config_for(server), export) == file
    assert len(server.requests) == 2
    with serving(open_ended(file)) as server, pytest.raises(PlatformTransportError, match="be cut"):
        run(config_for(server, max_attempts=1), export)


@pytest.mark.parametrize("coding", ["br", "gzip, gzip", "deflate"])
def test_content_encoding_that_was_not_requested_is_a_protocol_error(
    run: Run, rows_of: Callable[..., Any], coding: str
) -> None:
    respond = answer(body=b"[1]", headers={"Content-Encoding": coding})
    refused = pytest.raises(PlatformProtocolError, match=f"content encoding is '{coding}'")
    with serving(respond, respond, respond) as server:
        for work in (lambda: run(config_for(server), GET), lambda: rows_of(server)):
            with refused:
                work()
        with refused:
            run(config_for(server), reading({}))
    assert len(server.requests) == 3
    assert server.requests[0].headers["accept-encoding"] == "gzip"


@pytest.mark.parametrize("coding", ["X-GZip", "identity, gzip"])
def test_other_names_of_gzip_are_read(run: Run, coding: str) -> None:
    respond = answer(body=gzip.compress(b"[1]"), headers={"Content-Encoding": coding})
    with serving(respond) as server:
        assert run(config_for(server), GET) == [1]


def test_error_status_counts_in_an_unknown_content_encoding(run: Run) -> None:
    respond = answer(500, b"??", {"Content-Encoding": "br"})
    with serving(respond) as server, pytest.raises(PlatformServerError) as caught:
        run(config_for(server, max_attempts=1), GET)
    assert isinstance(caught.value, PlatformApiError)
    assert caught.value.service_message is None
