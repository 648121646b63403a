"""The span of a question in the traces of Airflow."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from airflow.sdk import DAG
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from airflow_provider_platform.operators.chat import PlatformChatOperator
from airflow_provider_platform.operators.evaluation import PlatformEvaluationOperator
from tests.support.releases import needs_new_tries
from tests.support.remote_tasks import PROMPT, chat, stopped_until_followed
from tests.support.task_context import TaskTries

if TYPE_CHECKING:
    from airflow_provider_platform.sandbox.server import Sandbox
    from tests.conftest import RunDag


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """What is traced, with the switch of Airflow on."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    monkeypatch.setenv("AIRFLOW__TRACES__OTEL_ON", "True")
    return exporter


def ours(spans: InMemorySpanExporter) -> list[Any]:
    return [
        span for span in spans.get_finished_spans() if span.name.partition(" ")[0] == "invoke_agent"
    ]


@pytest.mark.parametrize("deferrable", [False, pytest.param(True, marks=needs_new_tries)])
def test_each_question_has_one_span_in_both_modes(
    platform_sandbox: Sandbox, run_dag: RunDag, spans: InMemorySpanExporter, *, deferrable: bool
) -> None:
    control = platform_sandbox.control
    control.fault("no_final")
    with DAG(dag_id=f"traced_{deferrable}") as dag:
        PlatformChatOperator(
            task_id="ask",
            prompt=PROMPT,
            agent="Embedded analyst",
            poll_interval=0.05,
            retries=1,
            retry_delay=timedelta(0),
            deferrable=deferrable,
        )
    if deferrable:
        with stopped_until_followed(control):
            (task,) = run_dag(dag).tasks
    else:
        (task,) = run_dag(dag).tasks
    assert task.state == "success", task.error
    failed, answered = ours(spans)
    for span, run in zip((failed, answered), control.state().runs, strict=True):
        assert span.name == "invoke_agent Embedded analyst"
        assert span.attributes["gen_ai.operation.name"] == "invoke_agent"
        assert span.attributes["gen_ai.provider.name"] == "platform"
        assert span.attributes["gen_ai.agent.id"] == "2"
        assert span.attributes["gen_ai.conversation.id"] == run.chat_id
        assert span.start_time < span.end_time
        assert PROMPT not in span.to_json()
    assert failed.attributes["error.type"] == "ChatNoAnswerError"
    assert failed.attributes["gen_ai.usage.output_tokens"] > 0
    assert "error.type" not in answered.attributes


def test_span_has_the_tokens_and_is_below_the_span_of_the_task(
    platform_sandbox: Sandbox, spans: InMemorySpanExporter
) -> None:
    with trace.get_tracer("airflow").start_as_current_span("worker.ask") as parent:
        result = chat().execute(TaskTries().context())
    (span,) = ours(spans)
    usage = result["usage"]
    assert span.parent == parent.get_span_context()
    assert span.name == "invoke_agent 1"
    assert span.attributes["gen_ai.usage.output_tokens"] == usage["outputTokens"]
    sent = usage["inputTokens"] + usage["cacheWriteTokens"] + usage["cacheReadTokens"]
    assert span.attributes["gen_ai.usage.input_tokens"] == sent
    assert [span.attributes["gen_ai.response.model"]] == usage["models"]
    assert len(platform_sandbox.control.state().messages) == 1


@pytest.mark.parametrize("deferrable", [False, True])
def test_each_question_of_a_suite_has_one_span(
    platform_sandbox: Sandbox, run_dag: RunDag, spans: InMemorySpanExporter, *, deferrable: bool
) -> None:
    sql = "SELECT COUNT(*) AS orders FROM orders"
    platform_sandbox.control.answer("number", sql=sql, times=None)
    platform_sandbox.control.answer("number 2", error="overloaded", times=1)
    with DAG(dag_id=f"traced_suite_{deferrable}") as dag:
        PlatformEvaluationOperator(
            task_id="suite",
            questions=[{"name": n, "question": f"number {n}", "sql": sql} for n in "123"],
            min_measured=0.5,
            poll_interval=0.05,
            deferrable=deferrable,
        )
    assert run_dag(dag).state == "success"
    found = {span.attributes["gen_ai.conversation.id"]: span for span in ours(spans)}
    runs = platform_sandbox.control.state().runs
    assert len(ours(spans)) == len(runs) == 3
    assert {run.chat_id for run in runs} == found.keys()
    [failed] = [span for span in found.values() if "error.type" in span.attributes]
    assert failed.attributes["error.type"].startswith("Chat")
