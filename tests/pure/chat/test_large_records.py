"""A record that would stop the triggerer's loop for long is read in one pass, or refused."""

from __future__ import annotations

import pytest

from airflow_provider_platform.client.errors import PlatformProtocolError
from airflow_provider_platform.resources.chat.record_reader import MAX_RECORD_CONTAINERS
from airflow_provider_platform.resources.chat.run_state import ChatRun

ECHO = b'{"id":"m","role":"user","content":"q","sort":1}\n'


def run_with_echo() -> ChatRun:
    run = ChatRun(message_id="m", digest="d")
    run.connect(submits=True)
    run.feed(ECHO, 0.0)
    return run


def record(rows: str) -> bytes:
    call = f'{{"name":"platformSqlApi","input":"{{}}","result":{{"data":[{rows}]}}}}'
    return f'{{"id":"x","role":"assistant","content":"","sort":2,"toolCall":{call}}}\n'.encode()


def test_record_with_too_many_lists_is_refused_before_it_is_read() -> None:
    with pytest.raises(PlatformProtocolError, match="more than 250000 lists and objects"):
        run_with_echo().feed(record(",".join(["[1]"] * MAX_RECORD_CONTAINERS)), 1.0)
