"""An expected error appears in Airflow's log as one sentence."""

from __future__ import annotations

import logging
import traceback
from typing import TYPE_CHECKING, Any

from airflow_provider_platform._airflow import AirflowFailException
from airflow_provider_platform.client.errors import (
    ChatStreamError,
    PlatformNotFoundError,
    PlatformServerError,
)
from airflow_provider_platform.decorators.chat import platform_chat_task
from airflow_provider_platform.operators.api import PlatformApiOperator
from airflow_provider_platform.sensors.chat import PlatformChatThreadSensor
from tests.support.remote_tasks import chat
from tests.support.task_context import TaskTries, deferral

if TYPE_CHECKING:
    from collections.abc import Callable

    import pytest

    from airflow_provider_platform.sandbox.control.client import SandboxControl


def failure(function: Callable[..., Any], *args: Any, **kwargs: Any) -> BaseException:
    try:
        function(*args, **kwargs)
    except Exception as error:  # noqa: BLE001 - whatever Airflow would log
        return error
    raise AssertionError("it did not fail")


def shown(error: BaseException) -> str:
    """What a log prints of it, below the line of this file that called."""
    lines = traceback.format_exception(error)
    return "".join(line for line in lines if __file__ not in line and "site-packages" not in line)


def a_missing_report() -> PlatformApiOperator:
    return PlatformApiOperator(
        task_id="read", method="GET", path="/v1/deployments/1/reports/999999"
    )


def test_retryable_error_keeps_its_class(control: SandboxControl) -> None:
    control.fault("error", after=4)
    error = failure(chat().execute, TaskTries().context())
    assert type(error) is ChatStreamError
    assert "airflow_provider_platform/" not in shown(error)
    assert str(error) in shown(error)


def test_error_without_retry_shows_nothing_of_its_cause(control: SandboxControl) -> None:
    error = failure(a_missing_report().execute, TaskTries().context())
    assert type(error) is AirflowFailException
    assert "airflow_provider_platform/" not in shown(error)
    assert "PlatformNotFoundError" not in shown(error)
    # For callbacks and listeners.
    assert isinstance(error.__context__, PlatformNotFoundError)


def test_error_with_causes_in_libraries_shows_nothing_of_them(
    control: SandboxControl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(
        "AIRFLOW_CONN_PLATFORM_DEFAULT",
        '{"conn_type": "platform", "host": "http://127.0.0.1:1/api", "password": "token",'
        ' "extra": {"max_attempts": 1}}',
    )
    error = failure(a_missing_report().execute, TaskTries().context())
    text = shown(error)
    assert "no connection could be made" in text
    assert "airflow_provider_platform/" not in text
    assert "httpx" not in text.replace(str(error), "")
    assert "Traceback" in text
    assert text.count("Traceback") == 1


def test_error_of_a_trigger_has_a_short_traceback(control: SandboxControl) -> None:
    control.set_breakpoint("mid_stream")
    tries = TaskTries()
    context = tries.context()
    operator = chat(deferrable=True)
    deferred = deferral(operator.execute, context)
    met = PlatformServerError("It was not there.")
    event = {"status": "error", "run": deferred.kwargs["run"], "error": met.to_payload()}
    error = failure(
        operator.resume_execution,
        "execute_complete",
        {**deferred.kwargs, "event": event},
        context,
    )
    assert type(error) is PlatformServerError
    assert "airflow_provider_platform/" not in shown(error)


def test_error_of_a_decorated_task_has_a_short_traceback(control: SandboxControl) -> None:
    control.fault("error", after=4)
    operator = platform_chat_task(lambda: "revenue by country", task_id="ask")().operator
    error = failure(operator.execute, TaskTries().context())
    assert type(error) is ChatStreamError
    assert "airflow_provider_platform/" not in shown(error)


def test_error_of_a_sensor_has_a_short_traceback(control: SandboxControl) -> None:
    sensor = PlatformChatThreadSensor(task_id="wait", chat_id="nobody-s", poke_interval=1)
    error = failure(sensor.poke, TaskTries().context())
    assert isinstance(error, AirflowFailException)
    assert "airflow_provider_platform/" not in shown(error)


def test_full_traceback_is_logged_at_debug_level(
    control: SandboxControl, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.DEBUG, "airflow_provider_platform"):
        failure(a_missing_report().execute, TaskTries().context())
    (record,) = [one for one in caplog.records if one.message == "Where it failed:"]
    assert record.levelno == logging.DEBUG
    assert record.exc_info is not None
    frames = "".join(traceback.format_exception(*record.exc_info))  # type: ignore[arg-type]
    assert "responses.py" in caplog.text or "responses.py" in frames


def test_an_error_of_the_dag_authors_own_keeps_its_frames(control: SandboxControl) -> None:
    def prompt() -> str:
        raise AirflowFailException("Nobody is to be asked today.")

    operator = platform_chat_task(prompt, task_id="ask")().operator
    error = failure(operator.execute, TaskTries().context())
    names = [frame.name for frame in traceback.extract_tb(error.__traceback__)]
    assert names[-1] == "prompt"
