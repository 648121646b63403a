"""The hook's methods for the management API: which request each of them makes."""

from __future__ import annotations

import inspect
import subprocess
import sys
from typing import Any

import pytest

from airflow_provider_platform.client.errors import PlatformInputError
from airflow_provider_platform.client.operations.operation import Operation
from airflow_provider_platform.client.operations.program import Call
from airflow_provider_platform.hooks.platform import PlatformHook
from tests.unit.client.operations.operation_calls import CALLS as OPERATION_CALLS

DEPLOYMENT = "/v1/deployments/7"

POSITIONAL = ("report_id", "workbook_id", "notification_id", "recipients")
"""What methods take by its place."""

Row = tuple[str, tuple[Any, ...], dict[str, Any], str, dict[str, Any], Any]
"""Method, arguments, request line, query, body."""


def methods() -> list[str]:
    verbs = ("get", "list", "start", "connect", "update", "duplicate", "publish", "attach")
    verbs += ("delete", "generate", "create", "add", "remove")
    of_airflow = {"get_conn", "get_connection_form_widgets", "get_ui_field_behaviour"}
    own = {name for name in vars(PlatformHook) if name.startswith(verbs)}
    return sorted(own - of_airflow)


def of_operation(name: str, given: dict[str, Any], *request: Any) -> Row:
    """A method makes the request of the operation of its name."""
    first = tuple(given[one] for one in POSITIONAL if one in given)
    return (name, first, {k: v for k, v in given.items() if k not in POSITIONAL}, *request)


CALLS: list[Row] = [
    *(of_operation(*row) for row in OPERATION_CALLS if row[0] in methods()),
    ("delete_embed_tenant", ("acme",), {}, "DELETE /v1/embed-tenants/acme/", {}, None),
]


class Asked(Exception):
    """Carries the operation that a method asked for first."""

    def __init__(self, operation: Operation[Any]) -> None:
        super().__init__(str(operation))
        self.operation = operation


class RecordingHook(PlatformHook):
    """Stops at the first operation instead of sending it."""

    def run(self, work: Any, on_event: Any = None) -> Any:
        if not isinstance(work, Operation):
            effect = next(work)
            assert isinstance(effect, Call)
            work = effect.operation
        raise Asked(work.in_deployment(self.resolve_deployment_id))

    def resolve_deployment_id(self, deployment_id: int | str | None = None) -> int:
        return int(deployment_id or 7)


def ask(method: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Operation[Any]:
    try:
        answer = getattr(RecordingHook(), method)(*args, **kwargs)
        next(answer)
    except Asked as asked:
        return asked.operation
    raise AssertionError(f"{method} asked for nothing")


@pytest.mark.parametrize(
    ("method", "args", "kwargs", "line", "query", "body"), CALLS, ids=[row[0] for row in CALLS]
)
def test_each_method_makes_its_request(
    method: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    line: str,
    query: dict[str, Any],
    body: Any,
) -> None:
    operation = ask(method, args, kwargs)

    assert f"{operation.method} {operation.path}" == line
    assert operation.query == query
    assert operation.body == body


def test_every_method_is_in_the_table() -> None:
    assert methods() == sorted(row[0] for row in CALLS)


@pytest.mark.parametrize("name", methods())
def test_every_method_has_a_description(name: str) -> None:
    assert inspect.getdoc(getattr(PlatformHook, name))


@pytest.mark.parametrize(
    "row",
    [row for row in CALLS if DEPLOYMENT in row[3]],
    ids=[row[0] for row in CALLS if DEPLOYMENT in row[3]],
)
def test_methods_of_a_deployment_take_another_deployment(row: Any) -> None:
    operation = ask(row[0], row[1], {**row[2], "deployment_id": "8"})

    assert operation.path.startswith("/v1/deployments/8")


def test_a_list_is_checked_before_it_is_read() -> None:
    with pytest.raises(PlatformInputError):
        RecordingHook().list_reports(sort_by="lastViewedAt", first=5)


def test_a_list_asks_for_nothing_until_it_is_read() -> None:
    RecordingHook().list_reports()


def test_a_list_is_read_page_by_page() -> None:
    class TwoPages(RecordingHook):
        asked = 0

        def run(self, work: Any) -> Any:
            self.asked += 1
            more = "after" not in work.query
            return work.read(
                {
                    "items": [{"id": self.asked}],
                    "pageInfo": {"hasNextPage": more, "endCursor": "c"},
                }
            )

    hook = TwoPages()
    reports = hook.list_reports()

    assert next(reports).id == 1
    assert hook.asked == 1
    assert [report.id for report in reports] == [2]


@pytest.mark.exhaustive
def test_importing_the_hook_imports_no_models() -> None:
    code = (
        "import sys, airflow_provider_platform.hooks.platform\n"
        "found = [m for m in sys.modules if m.startswith('airflow_provider_platform.client.')]\n"
        "print([m.split('.', 2)[2] for m in found if '.management.' in m or '.data_api' in m])"
    )

    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert found.stdout.strip() == str(["management.account", "management.account.app_config"])
