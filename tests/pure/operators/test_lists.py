"""Lists in XCom have a maximum length, and the log reports it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

from airflow_provider_platform.client.models import ResponseModel
from airflow_provider_platform.operators._base import capped

if TYPE_CHECKING:
    from collections.abc import Iterator

log = logging.getLogger("test")


class Row(ResponseModel):
    id: int


class Source:
    """Rows that are counted as they are asked for."""

    def __init__(self, length: int) -> None:
        self._length = length
        self.asked = 0

    def __iter__(self) -> Iterator[ResponseModel]:
        for number in range(self._length):
            self.asked += 1
            yield Row(id=number)


@pytest.mark.parametrize(("length", "more"), [(0, False), (2, False), (3, False), (4, True)])
def test_log_says_whether_the_list_was_capped(
    length: int, more: bool, caplog: pytest.LogCaptureFixture
) -> None:
    source = Source(length)
    with caplog.at_level("INFO", "test"):
        found = capped(iter(source), 3, log)
    assert found == [{"id": number} for number in range(min(length, 3))]
    assert ("longer than max_items" in caplog.text) is more


def test_items_beyond_max_items_are_not_requested() -> None:
    source = Source(1000)
    capped(iter(source), 3, log)
    assert source.asked == 4
