"""What a program tells, as lines of a log."""

from __future__ import annotations

from airflow_provider_platform.client.management.dbt_sync.run import DbtSyncStage
from airflow_provider_platform.client.operations.log_events import log_changes, log_events
from airflow_provider_platform.client.redaction import KnownSecrets


class Log:
    """A log that keeps its lines."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def info(self, text: str, /, *values: object) -> None:
        self.lines.append(text % values)


def test_every_event_is_a_line() -> None:
    log = Log()
    tell = log_events(log, KnownSecrets(["key-of-the-tests"]))
    for event in ("100 %", "100 %", 3, "the key-of-the-tests"):
        tell(event)
    assert log.lines == ["100 %", "100 %", "3", "the ***"]


def test_what_stays_the_same_is_told_once() -> None:
    log = Log()
    tell = log_changes(log)
    for event in ("waiting", "waiting", "100 %", "waiting", "the key-of-the-tests"):
        tell(event, KnownSecrets(["key-of-the-tests"]))
    assert log.lines == ["waiting", "100 %", "waiting", "the ***"]


def test_a_stage_of_a_sync_is_one_safe_line() -> None:
    assert str(DbtSyncStage("s1", "RUNNING")) == "dbt sync s1: RUNNING"
    forged = str(DbtSyncStage("s1", "RUNNING", "half\n::group::done"))
    assert forged == r"dbt sync s1: RUNNING half\n:\:group::done"
