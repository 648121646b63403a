"""The Airflow of the system tests: all of it on this machine, on SQLite.

Under pytest-xdist one Airflow serves all workers: their controller starts it. Each worker has a
sandbox and a connection of its own, so that tests do not meet there.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.airflow.airflow_server import RunningAirflow, running_airflow
from tests.support.airflow.checked_history import allowed_rules, check_history
from tests.support.airflow.fixtures import *  # noqa: F403 - pytest finds them by their names here

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator


_SHARED = "running_airflow"
_stack = ExitStack()
_passed = pytest.StashKey[bool]()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Called in the controller before each of its workers starts."""
    config = node.config
    if not hasattr(config, "_running_airflow"):
        config._running_airflow = _stack.enter_context(running_airflow())
    node.workerinput[_SHARED] = config._running_airflow.as_json()


def pytest_unconfigure(config: pytest.Config) -> None:
    _stack.close()


@pytest.fixture(scope="session")
def airflow(request: pytest.FixtureRequest) -> Iterator[RunningAirflow]:
    """The running Airflow."""
    shared = getattr(request.config, "workerinput", None)
    if shared is None:
        with running_airflow() as server:
            yield server
    elif _SHARED in shared:
        yield RunningAirflow.from_json(shared[_SHARED])
    else:
        pytest.fail("In parallel, name tests/airflow on the command line: it starts its Airflow.")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if call.when == "call":
        item.stash[_passed] = report.passed
    return report


@pytest.fixture(autouse=True)
def _checked_history(request: pytest.FixtureRequest) -> Iterator[None]:
    """After each test that has passed, with all it has started still as it left it, its history is
    checked. A test that provokes what a rule forbids says so by a mark,
    `history_allows(rule, because=...)`."""
    if "start_task" not in request.fixturenames:
        yield
        return
    sandbox, started = (request.getfixturevalue(name) for name in ("sandbox", "started"))
    request.getfixturevalue("start_task")  # so that it ends after this one
    yield
    if request.node.stash.get(_passed, False):
        check_history(sandbox, started, allowed_rules(request.node))
