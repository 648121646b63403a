"""The events of a run as log lines."""

from __future__ import annotations

import logging

import pytest

from airflow_provider_platform.client.redaction import KnownSecrets
from airflow_provider_platform.resources.chat.run_state import Accepted, Detail
from airflow_provider_platform.resources.run_log import SHOWN_STEPS, EventLog, LogLine, log_changes


class Lines:
    def __init__(self) -> None:
        self.said: list[str] = []

    def info(self, text: str, /, *values: object) -> None:
        self.said.append(text % values if values else text)

    debug = info

    def warning(self, text: str, /, *values: object) -> None:
        self.said.append("warning: " + (text % values if values else text))


@pytest.mark.parametrize("steps", [0, 1, SHOWN_STEPS, SHOWN_STEPS + 1, 3 * SHOWN_STEPS])
def test_later_steps_of_a_long_run_are_folded_but_not_its_end(steps: int) -> None:
    lines = Lines()
    tell = EventLog(lines, KnownSecrets([]))
    for number in range(steps):
        tell(f"step {number}")
    tell.close()
    tell.close()
    lines.info("the end")

    shown = [f"step {number}" for number in range(steps)]
    folded = shown[SHOWN_STEPS:]
    group = ["::group::Further steps", *folded, "::endgroup::"] if folded else []
    assert lines.said == [*shown[:SHOWN_STEPS], *group, "the end"]


def test_thoughts_are_shown_at_debug_level_without_secrets(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    tell = EventLog(logging.getLogger("test"), KnownSecrets(["very-secret-key"]))
    tell(Accepted("agent", "m"))
    tell(Detail("The key is very-secret-key."))
    assert [(one.levelname, one.getMessage()) for one in caplog.records] == [
        ("INFO", "The agent accepted the prompt: chat agent, message m"),
        ("DEBUG", "The key is ***."),
    ]


class _Failed:
    is_warning = True

    def __str__(self) -> str:
        return "it failed"


def test_failed_step_is_a_warning_outside_the_folded_steps() -> None:
    lines = Lines()
    tell = EventLog(lines, KnownSecrets([]))
    for number in range(SHOWN_STEPS + 1):
        tell(f"step {number}")
    tell(_Failed())
    tell("after it")
    tell.close()
    begin = lines.said.index("::group::Further steps")
    assert lines.said[begin:] == [
        "::group::Further steps",
        f"step {SHOWN_STEPS}",
        "::endgroup::",
        "warning: it failed",
        "::group::Further steps",
        "after it",
        "::endgroup::",
    ]


FORGED = "7\n::endgroup::\x1b[31m"
SHOWN = "7\\n:\\:endgroup::\\x1b[31m"


def test_ids_of_the_service_cannot_forge_log_lines() -> None:
    """Whatever an event says: it is one line, and marks of groups in it are escaped."""
    lines = Lines()
    tell = EventLog(lines, KnownSecrets([]))
    for event in (Accepted("chat", FORGED), FORGED, Detail(FORGED)):
        tell(event)
    log_changes(lines)(f"build of commit {FORGED}", KnownSecrets([]))
    LogLine(f"The branch {FORGED} is open").write(lines, KnownSecrets([]))
    assert lines.said == [
        f"The agent accepted the prompt: chat chat, message {SHOWN}",
        SHOWN,
        SHOWN,
        f"build of commit {SHOWN}",
        f"The branch {SHOWN} is open",
    ]


def test_log_line_between_events_is_not_counted_as_a_step_and_has_no_secrets() -> None:
    lines = Lines()
    tell = EventLog(lines, KnownSecrets(["very-secret-key"]))
    for number in range(SHOWN_STEPS):
        tell(LogLine(f"line {number}: very-secret-key", is_warning=number == 1))
        tell(f"step {number}")
    assert lines.said[:4] == ["line 0: ***", "step 0", "warning: line 1: ***", "step 1"]
    assert len(lines.said) == 2 * SHOWN_STEPS
