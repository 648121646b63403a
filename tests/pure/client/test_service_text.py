"""Text of the service as one line of a log or an error."""

from __future__ import annotations

import pytest

from airflow_provider_platform.client.errors import PlatformError, from_payload
from airflow_provider_platform.client.redaction import (
    CUT,
    MAX_LOG_LINE,
    MAX_SERVICE_TEXT,
    log_line,
    quote_service,
)

FORGED = "7\n::endgroup::\r[2026-11-24] INFO - all is well \x1b[31m##[group]x"
SHOWN = "7\\n:\\:endgroup::\\r[2026-11-24] INFO - all is well \\x1b[31m#\\#[group]x"


def test_text_of_the_service_cannot_forge_log_lines() -> None:
    assert log_line(FORGED) == SHOWN
    assert quote_service(FORGED) == SHOWN
    assert log_line(SHOWN) == SHOWN


@pytest.mark.parametrize("text", ["a" * 5000, "\x1b" * 5000, "::group::" * 1000])
def test_text_of_the_service_is_cut(text: str) -> None:
    assert len(quote_service(text)) == MAX_SERVICE_TEXT
    assert len(log_line(text)) == MAX_LOG_LINE
    assert quote_service(text).endswith(CUT)


def test_error_with_ids_of_the_service_is_one_line() -> None:
    error = PlatformError(f"branch {FORGED} has no build", where=f"branch {FORGED}")
    assert str(error) == f"branch {SHOWN} has no build (branch {SHOWN})"
    assert str(from_payload(error.to_payload())) == str(error)
