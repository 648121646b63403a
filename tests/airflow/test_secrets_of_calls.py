"""No secret of a single call is in anything that Airflow keeps: data tokens that were minted,
client secrets, embed sessions, which the service quotes back in its errors."""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING

import pytest

from tests.airflow.test_secrets import MODES, contents, forms_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.airflow.airflow_server import RunningAirflow
    from tests.support.airflow.fixtures import StartTask
    from tests.support.airflow.sandbox_server import PatientControl

pytestmark = pytest.mark.system

CLIENT_SECRET = "canary-of-a-client-secret"
SESSION_ID = "5e55" * 8

_BASE64 = re.compile(rb"[\w+/-]{40,}={0,2}")
_JWT = re.compile(rb"eyJ[\w-]+\.(eyJ[\w-]+)\.[\w-]+")
_SESSION = re.compile(rb"sessionId\W{1,8}[0-9a-f]{32}")


def kept_by(home: Path) -> Iterator[tuple[str, bytes]]:
    """The name and the content of every file below the folder. What Airflow prints of a task's
    lines on its own output it masks nowhere, a connection's password neither: what the DAG itself
    logs on purpose is left out there. So is the bytecode of the DAG, which has its constants."""
    for file, content in contents(home):
        if file.suffix == ".pyc":
            continue
        if file.name == "standalone.log":
            lines = [line for line in content.splitlines() if b"A careless" not in line]
            yield file.name, b"\n".join(lines)
        else:
            yield file.name, content


def files_with(home: Path, secret: str) -> list[str]:
    """The files that hold the secret, as it is or in base64."""
    return [name for name, content in kept_by(home) if any(f in content for f in forms_of(secret))]


def minted_secrets(home: Path) -> list[bytes]:
    """What shows of data tokens and embed sessions, which the service has made up, as it is or in
    base64."""
    found = []
    for _, kept in kept_by(home):
        content = b" ".join([kept, *(_decoded(coded) for coded in _BASE64.findall(kept))])
        claims = [_decoded(part) for part in _JWT.findall(content)]
        found += [claim for claim in claims if b"deployment" in claim]
        found += _SESSION.findall(content)
    return found


def _decoded(coded: bytes) -> bytes:
    """What the base64 text stands for; a text that is none gives nothing."""
    standard = coded.rstrip(b"=").translate(bytes.maketrans(b"-_", b"+/"))
    try:
        return base64.b64decode(standard + b"=" * (-len(standard) % 4))
    except binascii.Error:
        return b""


@MODES
def test_airflow_stores_no_secret_after_errors_that_quote_a_call(
    start_task: StartTask, sandbox: PatientControl, airflow: RunningAirflow, deferrable: bool
) -> None:
    """`deferrable` stands for calls on an event loop, and for errors that quote a URL."""
    form = "url" if deferrable else "plain"
    for match in (
        {"api": "data", "quotes": "authorization"},
        {"path": "oauth", "quotes": "body"},
        {"path": "session/token", "quotes": "body"},
        {"path": "session/revoke", "quotes": "body"},
    ):
        sandbox.fault("status", status=403, message="not with", quote_form=form, **match)
    task = start_task("secrets", "quoted_back", deferrable=deferrable)
    task.wait("failed")
    logs = task.logs()
    assert len(re.findall(r"PlatformPermissionError.*not with", logs)) >= 4, logs
    # Airflow may show the header of a token, which is no secret.
    hidden = r"(eyJ[\w-]*\.?)?\*{3,}(, \*{3,}){3}"
    assert re.search(f"A careless line: {hidden}", logs), logs
    assert re.search(f"A careless error: {hidden}", logs), logs
    seen = files_with(airflow.home, task.run_id)
    assert any(name.startswith("airflow.db") for name in seen), seen
    assert "standalone.log" in seen
    assert files_with(airflow.home, CLIENT_SECRET) == []
    assert files_with(airflow.home, SESSION_ID) == []
    assert minted_secrets(airflow.home) == []


def test_search_for_minted_secrets_finds_every_form(
    tmp_path: Path, sandbox: PatientControl
) -> None:
    token = sandbox.service_token(deploymentId=1).encode()
    session = b'{"sessionId": "' + b"0a" * 16 + b'"}'
    for secret in (token, session):
        for number, kept in enumerate((b"x " + secret, base64.b64encode(secret))):
            (tmp_path / f"{number}.log").write_bytes(kept)
        assert len(minted_secrets(tmp_path)) == 2
