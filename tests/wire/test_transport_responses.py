"""How the transport handles responses, and when it repeats a request."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.client import responses
from airflow_provider_platform.client.errors import (
    PlatformAddressError,
    PlatformConflictError,
    PlatformNotFoundError,
    PlatformRateLimitError,
    PlatformServerError,
    PlatformTransientConflictError,
    PlatformTransportError,
    from_payload,
)
from airflow_provider_platform.client.operation import operation, typed
from airflow_provider_platform.resources.branches import (
    MergeResponse,
)
from airflow_provider_platform.resources.chat.thread import abort
from airflow_provider_platform.resources.reports import list_reports
from tests.support.wire.calls import DELETE, GET, KEY, POST, TOKEN, Run, config_for, reading
from tests.support.wire.http_server import (
    Answer,
    Exchange,
    answer,
    closed_port,
    serving,
)

if TYPE_CHECKING:
    from airflow_provider_platform.client.api import Api


def cut_off(exchange: Exchange) -> None:
    answer(body=b'{"a": ', length=500)(exchange)


def reset(exchange: Exchange) -> None:
    exchange.reset()


def silent_end(exchange: Exchange) -> None:
    """The connection ends without a word."""


BROKEN = [cut_off, reset, silent_end, answer(body=b"junk", headers={"Content-Encoding": "gzip"})]


@pytest.mark.parametrize("broken", BROKEN, ids=["cut off", "reset", "silent end", "no gzip"])
def test_broken_response_is_repeated_only_for_a_repeatable_call(run: Run, broken: Answer) -> None:
    """What may be repeated is; what must not be processed twice is sent once."""
    with serving(broken, broken, answer(body=b"[1]")) as server:
        assert run(config_for(server), GET) == [1]
    with serving(broken) as server:
        with pytest.raises(PlatformTransportError, match=r"API call: .*\(POST /v1/x\)") as caught:
            run(config_for(server), POST)
        assert caught.value.processed is None
    assert len(server.requests) == 1


def test_error_names_the_address_if_no_connection_could_be_made(run: Run) -> None:
    url = f"http://127.0.0.1:{closed_port()}"
    with pytest.raises(PlatformTransportError) as caught:
        run(config_for(url, max_attempts=2), POST)
    assert f"no connection could be made to {url} (ConnectError" in caught.value.message
    assert caught.value.processed is False


def test_server_without_tls_names_ca_bundle(run: Run) -> None:
    with serving() as server:
        url = server.url.replace("http:", "https:")
        with pytest.raises(PlatformTransportError, match="ca_bundle") as caught:
            run(config_for(url, max_attempts=1), POST)
    assert caught.value.processed is False


def test_timeout_applies_to_the_whole_response(run: Run) -> None:
    """Bytes that come one by one do not prolong it."""

    def dribble(exchange: Exchange) -> None:
        answer(body=b"", length=10**6)(exchange)
        for _ in range(500):
            if gone.wait(0.02):
                return
            exchange.send(b" ")

    gone = threading.Event()
    with serving(dribble) as server:
        with pytest.raises(PlatformTransportError, match="no complete response within 1 seconds"):
            run(config_for(server, request_timeout=1.0), POST)
        gone.set()


def test_timeout_ends_at_the_deadline(run: Run) -> None:
    def silence(exchange: Exchange) -> None:
        exchange.wait_for_the_client_to_leave()

    async def late(api: Api) -> Any:
        return await api.call(GET, deadline=1000.0)

    timed_out = pytest.raises(PlatformTransportError, match="within 1 seconds")
    with serving(silence) as server, timed_out:
        run(config_for(server), late, clock=lambda: 1000.0)
    assert len(server.requests) == 1


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_redirects_are_not_followed(run: Run, status: int) -> None:
    with serving(answer()) as other, serving() as server:
        server.answers += [answer(status, b"", {"Location": other.url})] * 3
        config = config_for(server)
        for work in (GET, lambda api: abort(api, "c1", None), reading({})):
            with pytest.raises(PlatformAddressError, match=f"answered {status}, a redirect to"):
                run(config, work)
    assert len(server.requests) == 3
    assert other.requests == []


def test_typed_results_contain_no_credential_of_the_connection(run: Run) -> None:
    text = json.dumps({"data": [], "items": [{"id": 1, "name": f"is {TOKEN}", TOKEN: [KEY]}]})
    with serving(answer(body=text.encode()), answer(body=text.encode())) as server:
        page = run(config_for(server), list_reports(deployment_id=7))
        assert page.to_json()["items"] == [{"id": 1, "name": "is ***", "***": ["***"]}]
        assert run(config_for(server), GET) == json.loads(text)


def test_error_with_a_broken_body_keeps_its_class(run: Run) -> None:
    broken = answer(429, b'{"mess', {"Retry-After": "0"}, length=500)
    with serving(broken, answer(body=b"[1]")) as server:
        assert run(config_for(server), POST) == [1]
    with serving(broken) as server, pytest.raises(PlatformRateLimitError) as caught:
        run(config_for(server, max_attempts=1), POST)
    assert caught.value.retry_after == 0


def test_status_of_an_error_counts_if_its_body_never_ends(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(responses, "ERROR_SECONDS", 0.05)

    def stalled(exchange: Exchange) -> None:
        answer(409, b'{"mess', length=500)(exchange)
        exchange.wait_for_the_client_to_leave()

    with serving(stalled) as server, pytest.raises(PlatformConflictError):
        run(config_for(server, request_timeout=5), POST)


def test_call_is_sent_max_attempts_times_and_a_single_call_once(run: Run) -> None:
    with serving(*[answer(502)] * 9) as server:
        with pytest.raises(PlatformServerError):
            run(config_for(server, max_attempts=3), GET)
        assert len(server.requests) == 3

        async def once(api: Api) -> Any:
            return await api.call(GET, once=True)

        with pytest.raises(PlatformServerError):
            run(config_for(server, max_attempts=3), once)
        assert len(server.requests) == 4


def test_delete_is_not_done_if_no_earlier_attempt_can_have_been_carried_out(run: Run) -> None:
    """A wrong id in a storm of requests."""
    busy = answer(429, b"", {"Retry-After": "0"})
    with serving(busy, answer(404)) as server, pytest.raises(PlatformNotFoundError):
        run(config_for(server), DELETE)
    with serving(answer(502), busy, answer(404)) as server:
        assert run(config_for(server), DELETE) is None


def test_redirect_error_keeps_the_port_and_no_credential(run: Run) -> None:
    moved = answer(301, b"", {"Location": "https://me:canary@platform.test:8443/x?token=canary"})
    with (
        serving(moved) as server,
        pytest.raises(PlatformAddressError, match=r"redirect to https://platform\.test:8443/x\."),
    ):
        run(config_for(server), GET)


@pytest.mark.parametrize("target", ["javascript:alert(1)", "http://[::1", "http://a\tb/"])
def test_redirect_to_no_address_is_a_redirect(run: Run, target: str) -> None:
    """httpx reads the target of each redirect, also if it follows none."""
    moved = answer(302, b"", {"Location": target})
    with serving(moved) as server, pytest.raises(PlatformAddressError, match="answered 302"):
        run(config_for(server), POST)


def test_repeated_delete_succeeds_if_its_first_response_was_lost(run: Run) -> None:
    """The second response says that nothing is left; no response has the deleted fields."""
    body = {"externalWorkbookId": "w"}
    forget = typed("disconnectReportFromWorkbook", MergeResponse)(
        deployment_id=7, report_id=9, body=body
    )
    gone = answer(status=404, body=b'{"message": "gone"}')
    with serving(silent_end, gone) as server:
        report = run(config_for(server), forget)
    assert isinstance(report, MergeResponse)
    assert report.to_json() == {}
    with serving(silent_end, gone) as server:
        assert run(config_for(server), DELETE) is None
    with serving(answer(), silent_end, gone) as server:  # on a connection that was kept open

        async def read_then_delete(api: Any) -> Any:
            await api.call(GET)
            return await api.call(DELETE)

        assert run(config_for(server), read_then_delete) is None
    with serving(gone) as server, pytest.raises(PlatformNotFoundError):
        run(config_for(server), forget)


CHANGED = answer(status=409, body=b'{"message": "busy", "code": "upsert_branch_changed"}')


def test_upsert_is_repeated_after_a_write_of_another_client(run: Run) -> None:
    upsert = operation("upsertReportByPublicId", deployment_id=7, public_id="p", body={"name": "n"})
    with serving(CHANGED, answer(body=b'{"id": 1}')) as server:
        assert run(config_for(server), upsert) == {"id": 1}
    with (
        serving(CHANGED) as server,
        pytest.raises(PlatformTransientConflictError, match="busy") as caught,
    ):
        run(config_for(server, max_attempts=1), upsert)
    assert caught.value.retryable
    assert caught.value.code == "upsert_branch_changed"
    again = from_payload(caught.value.to_payload())
    assert isinstance(again, PlatformTransientConflictError)
    assert again.code == "upsert_branch_changed"


def test_any_other_conflict_is_an_error_with_its_code(run: Run) -> None:
    said = b'{"message": "two of them", "code": "ambiguous_legacy_id"}'
    upsert = operation("upsertWorkbookBySlug", deployment_id=7, slug="s", body={"name": "n"})
    with (
        serving(answer(status=409, body=said)) as server,
        pytest.raises(PlatformConflictError, match=r"two of them \(code ambiguous_leg") as caught,
    ):
        run(config_for(server), upsert)
    assert not caught.value.retryable
    assert caught.value.code == "ambiguous_legacy_id"
    assert len(server.requests) == 1
    with (
        serving(answer(status=409, body=b"")) as server,
        pytest.raises(PlatformConflictError) as bare,
    ):
        run(config_for(server), upsert)
    assert bare.value.code is None
