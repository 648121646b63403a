"""Which names count as time zones."""

from __future__ import annotations

import pytest

from airflow_provider_platform.client.argument_rules import check_timezone


@pytest.mark.parametrize("name", ["UTC", "Europe/Berlin", "America/Argentina/Buenos_Aires"])
def test_iana_time_zones_are_accepted(name: str) -> None:
    assert check_timezone(name) == name


@pytest.mark.parametrize("name", ["", "Mars/Olympus", "../etc/passwd", "+02:00", "/UTC", "\0"])
def test_other_time_zones_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="IANA"):
        check_timezone(name)
