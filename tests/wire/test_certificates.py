"""Real TLS handshakes: which certificates are trusted, and how an error names the others."""

from __future__ import annotations

import datetime as dt
import ssl
from typing import TYPE_CHECKING, Any

import pytest
import trustme

from airflow_provider_platform.client import http
from airflow_provider_platform.client.errors import PlatformTransportError
from tests.support.wire.calls import GET, POST, Run, config_for, reading, run_sync
from tests.support.wire.http_server import answer, serving

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from airflow_provider_platform.client.api import Api

LAST_YEAR = dt.datetime.now(dt.UTC) - dt.timedelta(days=365)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture
def bundle(authority: trustme.CA, tmp_path: Path) -> Path:
    """The authority's certificate, as a company hands it out."""
    place = tmp_path / "ca.pem"
    authority.cert_pem.write_to_path(str(place))
    return place


@pytest.fixture(autouse=True)
def fresh_contexts() -> Iterator[None]:
    http._context.cache_clear()
    yield
    http._context.cache_clear()


def certified(authority: trustme.CA, name: str = "127.0.0.1", **options: Any) -> ssl.SSLContext:
    """What a server of that name shows."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(name, **options).configure_cert(context)
    return context


def test_the_connections_own_authority_is_trusted(
    run: Run, authority: trustme.CA, bundle: Path
) -> None:
    with serving(answer(body=b"[1]"), answer(body=b"{}\n"), tls=certified(authority)) as server:
        config = config_for(server, ca_bundle=str(bundle))
        assert run(config, GET) == [1]
        assert b"".join(piece or b"" for piece in run(config, reading({}))) == b"{}\n"


def test_replaced_certificate_authority_is_read_again(
    run: Run, authority: trustme.CA, bundle: Path
) -> None:
    following = trustme.CA()
    with serving(answer(body=b"[1]"), answer(body=b"[2]"), tls=certified(following)) as server:
        config = config_for(server, ca_bundle=str(bundle), max_attempts=1)
        with pytest.raises(PlatformTransportError):
            run(config, GET)
        following.cert_pem.write_to_path(str(bundle))
        assert run(config, GET) == [1]


@pytest.mark.parametrize("name", ["SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"])
def test_authorities_that_the_environment_names_are_trusted(
    run: Run, authority: trustme.CA, bundle: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv(name, str(bundle))
    with serving(answer(body=b"[1]"), tls=certified(authority)) as server:
        assert run(config_for(server), GET) == [1]


@pytest.mark.parametrize(
    ("name", "options", "trusted", "reason"),
    [
        ("127.0.0.1", {}, False, "unable to get local issuer certificate"),
        ("platform.test", {}, True, "certificate is not valid for '127.0.0.1'"),
        ("127.0.0.1", {"not_before": LAST_YEAR, "not_after": LAST_YEAR}, True, "has expired"),
    ],
    ids=["unknown authority", "another name", "expired"],
)
def test_any_other_certificate_is_refused_before_a_secret_is_sent(
    run: Run,
    authority: trustme.CA,
    bundle: Path,
    name: str,
    options: dict[str, Any],
    trusted: bool,
    reason: str,
) -> None:
    with serving(answer(), tls=certified(authority, name, **options)) as server:
        config = config_for(server, max_attempts=1, ca_bundle=str(bundle) if trusted else None)
        with pytest.raises(PlatformTransportError, match=reason) as caught:
            run(config, POST)
        assert server.requests == []
        assert caught.value.processed is False
        assert "ca_bundle" in str(caught.value)
        assert run(config_for(server, verify_tls=False), GET) == {}


def test_missing_check_of_certificates_is_one_warning(
    caplog: pytest.LogCaptureFixture, authority: trustme.CA
) -> None:
    """A sensor opens a client for each poke."""
    with serving(*[answer(body=b"[1]")] * 6, tls=certified(authority)) as server:
        config = config_for(server, verify_tls=False)

        async def calls(api: Api) -> None:
            for operation in (GET, POST, GET):
                await api.call(operation)

        run_sync(config, calls)
        run_sync(config, calls)
    [warning] = [one for one in caplog.records if "verify_tls" in one.getMessage()]
    assert warning.levelname == "WARNING"
