"""The example pipeline through a real Airflow: both modes give the same, whoever waits."""

from __future__ import annotations

import re
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from airflow_provider_platform.sandbox.demo.home import PARAMETERS

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.demo.dag_runs import FinishedRun
    from airflow_provider_platform.sandbox.server import Sandbox
    from tests.conftest import RunDag

EXAMPLES = Path(__file__).parents[3] / "example_dags"
PIPELINE = EXAMPLES / "nightly_pipeline.py"
REPORT = PARAMETERS["nightly_pipeline"]

# Ids, times and usage differ from run to run, by right.
_DIFFERS = {
    "chat_id",
    "message_id",
    "sync_job_id",
    "workflow_id",
    "syncJobId",
    "uuid",
    "usage",
    "hash",
    "opened_hash",
}
_DIFFERS |= {"completedAt", "durationMs", "placedAt", "refreshedAt", "updatedAt"}


def comparable(value: Any, key: str = "") -> Any:
    if key in _DIFFERS:
        return f"<{key}>"
    if isinstance(value, dict):
        return {name: comparable(item, name) for name, item in value.items()}
    if isinstance(value, list):
        return [comparable(item) for item in value]
    if not isinstance(value, str):
        return value
    return re.sub(r"placement-\w+", "<placement>", re.sub(r"\d{8}T\d{6}", "<run_after>", value))


def xcoms(run: FinishedRun) -> dict[str, Any]:
    found = {task.name: dict(task.xcoms) for task in run.tasks}
    for values in found.values():
        for key in list(values):
            # Without a value `usage` is no XCom of its own on Airflow 3.0.
            if key.endswith("_link") or key == "usage":
                del values[key]
    return {name: comparable(values) for name, values in found.items()}


@pytest.mark.exhaustive
@pytest.mark.parametrize("deferrable", ["False", "True"])
def test_the_pipeline_hands_the_answer_to_a_downstream_task(
    platform_sandbox: Sandbox,
    run_dag: RunDag,
    monkeypatch: pytest.MonkeyPatch,
    deferrable: str,
) -> None:
    monkeypatch.setenv("AIRFLOW__OPERATORS__DEFAULT_DEFERRABLE", deferrable)
    run = run_dag(PIPELINE, conf=REPORT)

    tasks = ("sync_dbt", "open_branch", "ask_agent", "connect_report", "summarize")
    assert run.states == dict.fromkeys((*tasks, "close_branch", "delete_branch"), "success")
    result = run.xcom("ask_agent")
    keys = {"answer", "chat_id", "message_id", "prompt", "queries", "usage", "user"}
    assert set(result) == keys
    assert result["prompt"] == "chart revenue by country"
    (query,) = result["queries"]
    assert query["columns"] == [
        {"name": "country", "type": "String"},
        {"name": "revenue", "type": "Double"},
    ]
    assert query["total_rows"] == len(query["rows"]) == 8
    assert str(query["rows"][0][0]) in result["answer"]
    assert run.xcom("ask_agent", "answer") == result["answer"]
    assert result["answer"] in run.xcom("summarize")
    placements = run.xcom("connect_report")["externalWorkbookPlacements"]
    assert [placement["resultLocation"] for placement in placements] == ["Revenue!A1"]

    seen = platform_sandbox.control.state()
    assert [message.text for message in seen.messages] == ["chart revenue by country"]
    assert [entry.branch for entry in seen.runs] == [run.xcom("sync_dbt", "branch_name")]
    assert len(seen.syncs) == 1


def test_the_pipeline_leaves_rows_and_chart_in_a_folder(
    platform_sandbox: Sandbox, run_dag: RunDag, tmp_path: Path
) -> None:
    run = run_dag(PIPELINE, conf=REPORT | {"output_folder": str(tmp_path), "charts": ["png"]})
    [query] = run.xcom("ask_agent", "queries")
    assert Path(query["path"].removeprefix("file://")).read_text().count("\n") == 9
    [picture] = query["chart_paths"]
    assert Path(picture.removeprefix("file://")).read_bytes().startswith(b"\x89PNG")


@pytest.mark.exhaustive
def test_both_modes_give_the_same_xcoms(
    platform_sandbox: Sandbox, run_dag: RunDag, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Only an open stream gets the usage, and the sandbox's runs end at once.
    monkeypatch.setattr("airflow_provider_platform.resources.chat.call.EARLY_END", 60)
    found = []
    for deferrable in ("False", "True"):
        platform_sandbox.control.reset()
        monkeypatch.setenv("AIRFLOW__OPERATORS__DEFAULT_DEFERRABLE", deferrable)
        found.append(xcoms(run_dag(PIPELINE, conf=REPORT)))
    assert found[0] == found[1]


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["notifications", "reports_and_workbooks"])
def test_other_example_dags_succeed(platform_sandbox: Sandbox, run_dag: RunDag, name: str) -> None:
    run = run_dag(EXAMPLES / f"{name}.py", conf=PARAMETERS[name])
    assert set(run.states.values()) == {"success"}, [task.error for task in run.tasks]


def test_the_answer_reaches_slack_with_its_chart(
    platform_sandbox: Sandbox, run_dag: RunDag, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Slack's provider is not installed here: its notifier is one that records."""
    from airflow_provider_platform._airflow import BaseNotifier

    sent: list[Any] = []

    class SlackNotifier(BaseNotifier):
        template_fields = ("text", "channel", "blocks")

        def __init__(self, *, slack_conn_id: str, channel: str, username: str) -> None:
            super().__init__()
            self.slack_conn_id, self.channel, self.username = slack_conn_id, channel, username
            self.text, self.blocks = "This is a default message", ()

        def notify(self, context: Any) -> None:
            sent.append(self)

    package = ModuleType("airflow.providers.slack")
    package.__spec__ = ModuleSpec(package.__name__, None)
    monkeypatch.setitem(sys.modules, package.__name__, package)
    module = "airflow.providers.slack.notifications.slack"
    SlackNotifier.__module__, SlackNotifier.__qualname__ = module, "SlackNotifier"
    stand_in = ModuleType(module)
    stand_in.SlackNotifier = SlackNotifier  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, module, stand_in)

    run = run_dag(EXAMPLES / "answer_to_slack.py", conf={"channel": "#revenue"})
    assert run.states == {"ask_agent": "success"}
    [message] = sent
    assert message.channel == "#revenue"
    assert run.xcom("ask_agent", "answer") in message.text
    texts = [block["text"]["text"] for block in message.blocks if "text" in block]
    assert texts[0] == f"Revenue, {run.run_id}"
    assert any(re.search(r"^Office +█+ 69,657\.00$", text, re.MULTILINE) for text in texts)


def test_every_example_is_tested() -> None:
    tests = (Path(__file__), *(Path(__file__).parents[1] / "recipes").glob("test_*.py"))
    code = "".join(file.read_text() for file in tests)
    for file in EXAMPLES.glob("*.py"):
        assert file.stem in code, file.name
