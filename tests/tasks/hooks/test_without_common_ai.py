"""What needs Airflow's common-ai provider says so where it is used."""

from __future__ import annotations

import sys

import pytest

from airflow_provider_platform import hooks
from airflow_provider_platform.client.errors import PlatformInputError
from airflow_provider_platform.hooks.platform import PlatformHook


def test_missing_common_ai_provider_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "airflow.providers.common.ai.exceptions", None)
    monkeypatch.delitem(sys.modules, f"{hooks.__name__}.managed_agent", raising=False)
    monkeypatch.delattr(hooks, "managed_agent", raising=False)
    with pytest.raises(PlatformInputError, match="pip install 'apache-airflow-providers-common-ai"):
        PlatformHook().agent("Sales")
