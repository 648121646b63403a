"""Airflow stores for this package what `shapes.json` says, and the package reads it back.

An upgrade meets waiting tasks, retries and threads of the version before it. `shapes.json` holds an
example of everything that is stored: names of keys, the record in the task state store, arguments
of triggers, arguments of deferrals, events, errors in events. A difference breaks this test: a new
field is added to the examples (and a record without it must be readable, so that its example stays
as another one); anything else is a breaking change (`docs/compatibility.md`).
"""

from __future__ import annotations

import asyncio
import json
from contextlib import nullcontext
from importlib import import_module
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.client import errors
from airflow_provider_platform.client.errors import PlatformError, from_payload
from airflow_provider_platform.links import PlatformLink
from airflow_provider_platform.operators._run_record import STORE_KEY, read_record
from airflow_provider_platform.operators.api import PlatformApiOperator
from airflow_provider_platform.operators.branches import (
    PlatformMergeBranchOperator,
    PlatformOpenBranchOperator,
)
from airflow_provider_platform.operators.chat import USAGE_KEY, PlatformChatOperator
from airflow_provider_platform.operators.dbt_sync import PlatformDbtSyncOperator
from airflow_provider_platform.operators.deliveries import PlatformRunDeliveryOperator
from airflow_provider_platform.operators.evaluation import PlatformEvaluationOperator
from airflow_provider_platform.operators.exports import PlatformExportDashboardOperator
from airflow_provider_platform.operators.notifications import PlatformCreateNotificationOperator
from airflow_provider_platform.operators.pre_aggregations import (
    PlatformBuildPreAggregationsOperator,
)
from airflow_provider_platform.operators.query import PlatformQueryOperator
from airflow_provider_platform.operators.workbooks import (
    PlatformDuplicateWorkbookOperator,
    PlatformPublishWorkbookOperator,
)
from airflow_provider_platform.resources.sensor_conditions import KINDS
from airflow_provider_platform.sensors.account import PlatformUserOAuthTokenSensor
from airflow_provider_platform.sensors.branches import PlatformBuildSensor
from airflow_provider_platform.sensors.chat import PlatformChatThreadSensor
from airflow_provider_platform.sensors.dbt_sync import PlatformDbtSyncSensor
from airflow_provider_platform.sensors.notifications import PlatformNotificationSensor
from airflow_provider_platform.sensors.reports import PlatformReportSensor
from tests.support.remote_tasks import stopped_until_followed
from tests.support.task_context import TaskTries, deferral

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.server import Sandbox

SHAPES: dict[str, Any] = json.loads(Path(__file__).with_name("shapes.json").read_text())
RUNS: dict[str, tuple[Any, dict[str, Any]]] = {
    "chat": (PlatformChatOperator, {"prompt": "revenue by country"}),
    "chat in a thread": (PlatformChatOperator, {"prompt": "revenue by country", "chat_id": "{}"}),
    "dbt sync": (PlatformDbtSyncOperator, {"branch_name": "nightly"}),
    "open branch": (PlatformOpenBranchOperator, {"branch_name": "nightly"}),
    "merge branch": (PlatformMergeBranchOperator, {"branch_name": "nightly"}),
    "export": (PlatformExportDashboardOperator, {"dashboard_id": 501, "output_path": "/tmp/a.pdf"}),
    "pre-aggregations": (
        PlatformBuildPreAggregationsOperator,
        {"cubes": ["customers"], "verify_sql": "SELECT 1 AS one"},
    ),
    "evaluation": (
        PlatformEvaluationOperator,
        {"questions": [{"name": "q", "question": "total revenue", "sql": "SELECT 1 AS one"}]},
    ),
    "evaluation by the service": (PlatformEvaluationOperator, {}),
    "delivery": (PlatformRunDeliveryOperator, {"delivery_id": 501}),
    "query": (PlatformQueryOperator, {"sql": "SELECT 1 AS one", "branch_name": "nightly"}),
    "query in pages": (
        PlatformQueryOperator,
        {"sql": "SELECT id FROM orders", "page_by": ["id"], "branch_name": "nightly"},
    ),
}
WAITS: dict[str, tuple[Any, dict[str, Any]]] = {
    "chat_thread": (PlatformChatThreadSensor, {"chat_id": None}),
    "dbt_sync": (PlatformDbtSyncSensor, {"sync_job_id": "none-yet"}),
    "build": (PlatformBuildSensor, {"branch_name": "nightly"}),
    "report": (PlatformReportSensor, {"name": "none yet"}),
    "notification": (PlatformNotificationSensor, {"dashboard_id": 501}),
    "user_oauth_token": (
        PlatformUserOAuthTokenSensor,
        {"integration_id": 1, "target_statuses": ["gone"]},
    ),
}
CALLS: dict[str, tuple[Any, dict[str, Any]]] = {
    "api": (
        PlatformApiOperator,
        {"method": "POST", "path": "/v1/deployments/1/workbooks", "body": {"name": "Nightly"}},
    ),
    "create notification": (
        PlatformCreateNotificationOperator,
        {"schedule_type": "DAILY", "hour": 6, "dashboard_id": 501},
    ),
    "duplicate workbook": (PlatformDuplicateWorkbookOperator, {"workbook_id": 301}),
    "publish workbook": (PlatformPublishWorkbookOperator, {"workbook_id": 301}),
}


def shape_of(value: Any) -> Any:
    """Keys, kinds of values and, of a list, the shape of its first item."""
    if isinstance(value, dict):
        return {key: shape_of(item) for key, item in value.items()}
    if isinstance(value, list):
        return [shape_of(value[0])] if value else []
    return {int: "number", float: "number"}.get(type(value), type(value).__name__)


def stored(value: Any) -> Any:
    """What comes back of a value that was stored."""
    return json.loads(json.dumps(value))


def event_of(trigger: Any) -> Any:
    async def only_event() -> Any:
        [event] = [event async for event in trigger.run()]
        return stored(event.payload)

    return asyncio.run(only_event())


def add_nightly(sandbox: Sandbox, *, is_open: bool) -> None:
    """The branch of the examples, as a dbt sync leaves it or open."""
    (sandbox.control.open_branch if is_open else sandbox.control.add_branch)("nightly")


@pytest.mark.parametrize("name", RUNS)
def test_triggers_and_records_of_runs_have_the_stored_shape(
    name: str, platform_sandbox: Sandbox
) -> None:
    operator, arguments = RUNS[name]
    given = dict(arguments)
    platform_sandbox.control.set(default_api_scopes=["meta", "data", "graphql", "jobs"])
    add_nightly(platform_sandbox, is_open=name.startswith("query"))
    if "chat_id" in given:
        first = operator(task_id="first", prompt="total revenue", deferrable=False)
        given["chat_id"] = first.execute(TaskTries().context())["chat_id"]
    tries = TaskTries()
    context = tries.context()
    task = operator(task_id="task", deferrable=True, **given)
    chats = isinstance(task, PlatformChatOperator) or name == "evaluation"
    with stopped_until_followed(platform_sandbox.control) if chats else nullcontext():
        deferred = deferral(task.execute, context)
        found = {
            "record": stored(tries.store.get(STORE_KEY)),
            "trigger": stored(list(deferred.trigger.serialize())),
            "method": deferred.method_name,
            "kwargs": stored(deferred.kwargs),
            "event": event_of(deferred.trigger),
        }
    check("runs", name, found)


@pytest.mark.parametrize("kind", WAITS)
def test_triggers_of_sensors_have_the_stored_shape(kind: str, platform_sandbox: Sandbox) -> None:
    sensor, given = WAITS[kind]
    arguments = dict(given)
    if kind == "build":
        add_nightly(platform_sandbox, is_open=True)
        platform_sandbox.control.report_build("nightly", "building")
    if "chat_id" in arguments:
        platform_sandbox.control.set_breakpoint("mid_stream")
        asked = deferral(
            PlatformChatOperator(task_id="ask", prompt="total revenue", deferrable=True).execute,
            TaskTries().context(),
        )
        arguments["chat_id"] = asked.kwargs["run"]["chat_id"]
    task = sensor(task_id="task", deferrable=True, timeout=0.2, poke_interval=0.05, **arguments)
    deferred = deferral(task.execute, TaskTries().context())
    found = {
        "trigger": stored(list(deferred.trigger.serialize())),
        "method": deferred.method_name,
        "kwargs": stored(deferred.kwargs),
        "event": event_of(deferred.trigger),
    }
    check("waits", kind, found)


@pytest.mark.parametrize("name", CALLS)
def test_records_of_single_calls_have_the_stored_shape(
    name: str, platform_sandbox: Sandbox
) -> None:
    operator, arguments = CALLS[name]
    tries = TaskTries()
    operator(task_id="task", **arguments).execute(tries.context())
    check("calls", name, {"record": stored(tries.store[STORE_KEY])})


def check(group: str, name: str, found: dict[str, Any]) -> None:
    assert shape_of(found) == shape_of(SHAPES[group][name]), json.dumps(found, indent=2)


def test_stored_keys_are_unchanged() -> None:
    links = {PlatformLink().xcom_key}
    for link in PlatformLink.__subclasses__()[0].__subclasses__():
        links.add(link().xcom_key)
    assert SHAPES["keys"] == {
        "task_state_store": STORE_KEY,
        "task_state_store_usage": USAGE_KEY,
        "links": sorted(links),
        "conditions": sorted(KINDS),
    }


def test_stored_errors_keep_names_and_arguments() -> None:
    """Their names and arguments: an event's error is made again from both."""
    found = {}
    for name, kind in vars(errors).items():
        if isinstance(kind, type) and issubclass(kind, PlatformError):
            given = signature(kind).parameters.values()
            named = {one.name for one in given if one.kind is Parameter.KEYWORD_ONLY} - {"where"}
            known = dict.fromkeys(named, "x")
            payload = {"type": name, "message": "x", "where": "chat 1", "details": known}
            made = from_payload(payload)
            assert (type(made), made.to_payload()) == (kind, payload)
            found[name] = sorted(known)
    assert found == SHAPES["errors"]


@pytest.mark.parametrize(
    "example",
    [*SHAPES["runs"].values(), *SHAPES["waits"].values()],
    ids=[*SHAPES["runs"], *SHAPES["waits"]],
)
def test_stored_trigger_can_be_created_from_its_arguments(example: dict[str, Any]) -> None:
    path, arguments = example["trigger"]
    module, _, name = path.rpartition(".")
    trigger = getattr(import_module(module), name)(**arguments)
    assert stored(list(trigger.serialize())) == example["trigger"]


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", sorted(RUNS.keys() - {"export", "evaluation by the service"}))
def test_stored_event_completes_its_task(name: str, platform_sandbox: Sandbox) -> None:
    example = SHAPES["runs"][name]
    operator, arguments = RUNS[name]
    add_nightly(platform_sandbox, is_open=name.startswith("query"))
    task = operator(
        task_id="task",
        deferrable=True,
        **{**arguments, "poll_interval": 0.1} if not name.startswith("query") else arguments,
    )
    result = getattr(task, example["method"])(
        TaskTries().context(), example["event"], **example["kwargs"]
    )
    assert result


def test_stored_record_is_read_by_its_operator() -> None:
    for group in ("runs", "calls"):
        for example in SHAPES[group].values():
            if example["record"] is None:
                continue
            context: Any = {"task_state_store": {STORE_KEY: example["record"]}}
            record = read_record(context)
            assert record is not None
            assert stored(record.to_json()) == example["record"]
            # Airflow 3.0 to 3.2 count no clears.
            fewer = {name: of for name, of in example["record"].items() if name != "clear_number"}
            context = {"task_state_store": {STORE_KEY: fewer}}
            assert read_record(context) is not None
