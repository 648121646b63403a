"""`PlatformAnswerNotifier` in callbacks of real DAG runs, handing its message to notifiers."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from airflow.providers.smtp.notifications.smtp import SmtpNotifier
from airflow.sdk import DAG, task, task_group

from airflow_provider_platform._airflow import BaseNotifier, mask_secrets
from airflow_provider_platform.client.errors import PlatformConfigError, PlatformError
from airflow_provider_platform.notifications.answer import PlatformAnswerNotifier
from airflow_provider_platform.operators.chat import PlatformChatOperator
from tests.support.smtp_server import MailServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from airflow_provider_platform.sandbox.server import Sandbox
    from tests.conftest import RunDag

CHART = "chart revenue by category"
PLAIN = "revenue by country"
"""A question whose answer has no chart: drawing one takes half a second."""
FONTS = str(Path(__file__).parents[2] / "support" / "fonts")
IN_BOXES = {"text": "AAA", "font": "Boxes of the tests"}
SENT: list[str] = []
"""What notifiers of this module were given: a DAG is copied before it runs."""


@pytest.fixture(autouse=True)
def _nothing_sent() -> None:
    SENT.clear()


class Recording(BaseNotifier):
    """Sends nothing; an author's own notifier, which knows the message by its templates."""

    template_fields: Sequence[str] = ("message",)

    def __init__(self, message: str) -> None:
        super().__init__()
        self.message = message

    def notify(self, context: Any) -> None:
        SENT.append(self.message)


class Failing(BaseNotifier):
    def notify(self, context: Any) -> None:
        raise ConnectionError("no way to https://hooks.example/SECRET")


def keep(answer: dict[str, Any]) -> None:
    SENT.append(json.dumps({**answer, "pictures": [_start(p) for p in answer["picture_paths"]]}))


async def keep_on_loop(answer: dict[str, Any]) -> None:
    keep(answer)


def _start(path: str) -> str:
    return Path(path).read_bytes()[:4].decode("latin-1")


def kept() -> dict[str, Any]:
    [text] = SENT
    found: dict[str, Any] = json.loads(text)
    return found


def asking(name: str, send_with: Any, *, prompt: str = CHART, **kwargs: Any) -> DAG:
    on = kwargs.pop("on", "on_success_callback")
    notifier = PlatformAnswerNotifier(send_with, **kwargs.pop("message", {}))
    with DAG(name, schedule=None) as dag:
        PlatformChatOperator(task_id="ask", prompt=prompt, **{on: notifier}, **kwargs)
    return dag


def test_one_message_reports_all_mapped_queries() -> None:
    """Of `PlatformQueryOperator.partial(...).expand(...)`, or of `@task.platform_sql` mapped."""

    class CallbackTask:
        dag_id, run_id, task_id, map_index, log_url = "dag", "run", "report", -1, None

        def xcom_pull(self, **_: Any) -> list[dict[str, Any]]:
            names = {"columns": [{"name": "name", "type": "String"}], "path": None}
            return [{**names, "row_count": 1, "rows": [[name]]} for name in ("Ada", "Grace")]

    PlatformAnswerNotifier(keep, task_id="rows", charts=False).notify({"ti": CallbackTask()})
    assert re.search(r"Ada[\s\S]*Grace", kept()["text"])


@pytest.mark.exhaustive
def test_chart_of_a_message_uses_the_fonts_of_a_folder_and_its_notes_are_logged(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("vl_convert")
    encoding = {"x": {"field": "city"}, "y": {"field": "sales", "type": "quantitative"}}
    query = {
        "columns": [{"name": "city", "type": "String"}, {"name": "sales", "type": "Int64"}],
        "rows": [["A", "5"], ["Rome", "n/a"]],
        "total_rows": 2,
        "chart": {"title": IN_BOXES, "mark": "bar", "encoding": encoding},
    }

    class CallbackTask:
        dag_id, run_id, task_id, map_index, log_url = "dag", "run", "report", -1, None

        def xcom_pull(self, **_: Any) -> dict[str, Any]:
            return {"answer": "a", "queries": [query]}

    pages = []
    with caplog.at_level("WARNING"):
        for folder in (None, FONTS):
            notifier = PlatformAnswerNotifier(keep, task_id="ask", chart_fonts=folder)
            SENT.clear()
            notifier.notify({"ti": CallbackTask()})
            forms = kept()
            assert len(forms["picture_paths"]) == 1
            pages.append(forms["page"])
    assert pages[0] != pages[1]
    logged = caplog.text + capsys.readouterr().out  # by the release of Airflow
    assert "The chart leaves out 1 of 2 values of 'sales'" in logged


def test_success_message_has_answer_table_and_chart(
    platform_sandbox: Sandbox, run_dag: RunDag
) -> None:
    run = run_dag(asking("success", keep, deferrable=True))
    assert run.states == {"ask": "success"}
    sent_message = kept()
    result = run.xcom("ask")
    assert sent_message["result"] == result
    assert sent_message["title"] == "success.ask: answer"
    assert result["answer"] in sent_message["text"]
    assert re.search(r"^Office +69,?657", sent_message["text"], re.MULTILINE)
    assert re.search(r"^Office +█+ 69,657\.00$", sent_message["text"], re.MULTILINE)
    assert "DAG: success\nRun: " in sent_message["text"]
    assert sent_message["pictures"] == ["\x89PNG"]
    assert not Path(sent_message["picture_paths"][0]).exists()
    assert sent_message["slack_blocks"][0]["type"] == "header"


def test_own_notifier_gets_the_message_in_its_templates(
    platform_sandbox: Sandbox, run_dag: RunDag
) -> None:
    template = "{{ dag.dag_id }}: {{ platform_answer.title }}"
    title = {"title": "{{ ti.task_id }}!"}
    run = run_dag(asking("templates", Recording(template), prompt=PLAIN, message=title))
    assert run.states == {"ask": "success"}
    assert SENT == ["templates: ask!"]


def test_an_answer_is_never_rendered(platform_sandbox: Sandbox, run_dag: RunDag) -> None:
    prompt = "sql: SELECT '{{ '{{' }} 7 * 7 {{ '}}' }}'"
    targets = [Recording("{{ platform_answer.text }}"), keep]
    run_dag(asking("not_rendered", targets, prompt=prompt))
    assert "Your query: {{ 7 * 7 }}." in SENT[0]
    assert "{{ 7 * 7 }}" in json.loads(SENT[1])["html"]


def test_a_notifier_in_a_mapped_group_has_the_answer_of_its_own_map_index(
    platform_sandbox: Sandbox, run_dag: RunDag
) -> None:
    prompts = ["total revenue in March", "orders per month"]
    notifier = PlatformAnswerNotifier(keep, task_id="of_prompt.ask", charts=False)
    with DAG("mapped_group", schedule=None) as dag:

        @task(on_success_callback=notifier)
        def publish() -> str:
            return "published"

        @task_group
        def of_prompt(prompt: str) -> None:
            PlatformChatOperator(task_id="ask", prompt=prompt) >> publish()

        of_prompt.expand(prompt=prompts)
    run = run_dag(dag)
    sent_message = {
        int(re.findall(r"Map index: (\d)", one["text"])[0]): one["result"]
        for one in map(json.loads, SENT)
    }
    results = {index: run.xcom("of_prompt.ask", "return_value", index) for index in (0, 1)}
    assert sent_message == results
    assert results[0]["answer"] != results[1]["answer"]


@pytest.mark.exhaustive
def test_task_outside_of_the_mapped_group_sends_all_answers_of_the_group(
    platform_sandbox: Sandbox, run_dag: RunDag
) -> None:
    notifier = PlatformAnswerNotifier(keep, task_id="ask", charts=False)
    with DAG("all_mapped", schedule=None) as dag:

        @task(on_success_callback=notifier)
        def publish(name: str) -> str:
            return name

        ask = PlatformChatOperator.partial(task_id="ask").expand(
            prompt=["total revenue in March", "orders per month"]
        )
        ask >> publish.expand(name=["a", "b"])
    run = run_dag(dag)
    answers = [run.xcom("ask", "return_value", index)["answer"] for index in (0, 1)]
    assert len(SENT) == 2
    for one in map(json.loads, SENT):
        assert all(answer in one["result"]["answer"] for answer in answers)


def test_failure_message_has_the_reason_and_the_task_stays_failed(
    platform_sandbox: Sandbox, run_dag: RunDag
) -> None:
    dag = asking("failure", [Failing(), keep], on="on_failure_callback", active_branch_name="gone")
    contexts: list[Any] = []
    (ask,) = dag.tasks
    ask.on_failure_callback = [*ask.on_failure_callback, contexts.append]
    run = run_dag(dag)
    assert run.states == {"ask": "failed"}
    sent_message = kept()
    assert sent_message["result"] is None
    if "exception" not in contexts[0]:  # `DAG.test` of older releases does not say why
        assert sent_message["title"] == "failure.ask: no answer"
        return
    assert sent_message["title"] == "failure.ask failed"
    assert "What failed: " in sent_message["text"]
    assert "Bad branch" in sent_message["text"]


@pytest.mark.parametrize(
    ("look_up", "said"),
    [
        (lambda *_: ["check", "load_3"], "Failed tasks: check, load_3."),
        (lambda *_: next(iter(())), "Failed tasks: check."),
    ],
)
def test_callback_of_a_failed_dag_run_names_the_failed_tasks(
    monkeypatch: pytest.MonkeyPatch, look_up: Any, said: str
) -> None:
    """Airflow gives it a reason and the last failed task, and no exception (airflow#51402)."""

    class FailedTask:
        dag_id, run_id, task_id, map_index, log_url = "late", "r", "check", -1, None

    monkeypatch.setattr("airflow_provider_platform.notifications._message.get_failed", look_up)
    with DAG("late") as dag:
        pass
    context = {"dag": dag, "run_id": "r", "reason": "task_failure", "ti": FailedTask()}
    PlatformAnswerNotifier(keep)(context)
    message = kept()
    assert message["title"] == "late failed"
    assert f"The DAG run failed (task_failure). {said}" in message["text"]
    assert "no answer" not in message["text"]


def test_run_without_a_failed_task_failed_too() -> None:
    with DAG("deadlocked") as dag:
        pass
    context = {"dag": dag, "run_id": "r", "reason": "all_tasks_deadlocked"}
    PlatformAnswerNotifier(keep)(context)
    assert kept()["title"] == "deadlocked failed"


def test_one_notifier_of_several_tasks_renders_its_title_for_each() -> None:
    notifier = PlatformAnswerNotifier(keep, title="of {{ run_id }}")
    for run_id in ("one", "two"):
        notifier({"dag": DAG("shared", schedule=None), "run_id": run_id, "reason": "x"})
    assert [json.loads(one)["title"] for one in SENT] == ["of one", "of two"]


def test_reason_of_a_failure_contains_no_secret() -> None:
    secret = "a-password-of-somebody"
    mask_secrets([secret])
    notifier = PlatformAnswerNotifier(keep)
    dag = DAG("reason", schedule=None)
    notifier({"dag": dag, "exception": ValueError(f"{secret} is refused\n::endgroup::")})
    assert "What failed: ValueError: *** is refused" in kept()["text"]
    assert secret not in SENT[0]


def test_error_of_failed_notifiers_contains_no_addresses() -> None:
    notifier = PlatformAnswerNotifier([Failing(), keep, Failing()])
    with pytest.raises(PlatformError) as raised:
        notifier.notify({"run_id": "r", "dag": DAG("said", schedule=None)})
    assert str(raised.value) == (
        "2 of 3 notifiers could not send: Failing (ConnectionError), Failing (ConnectionError). "
        "The log above has the reason of each."
    )
    assert len(SENT) == 1


@pytest.fixture
def mail_server(monkeypatch: pytest.MonkeyPatch) -> Iterator[MailServer]:
    with MailServer() as server:
        connection = {
            "conn_type": "smtp",
            "host": "127.0.0.1",
            "port": server.port,
            "extra": {"disable_ssl": True, "disable_tls": True, "from_email": "airflow@a.example"},
        }
        monkeypatch.setenv("AIRFLOW_CONN_SMTP_DEFAULT", json.dumps(connection))
        yield server


def check_mail(server: MailServer) -> None:
    [mail] = server.mails
    assert mail["To"] == "bi@a.example"
    body, picture = list(mail.walk())[1:]
    html = body.get_content()
    [source] = re.findall(r'<img src="cid:([^"]+)"', html)
    assert (picture["Content-ID"], picture.get_filename()) == (f"<{source}>", source)
    assert picture.get_content().startswith(b"\x89PNG")
    assert mail.get_content_type() == "multipart/related"
    assert "<td" in html


@pytest.mark.exhaustive
def test_mails_of_several_runs_keep_the_authors_subject(
    platform_sandbox: Sandbox, run_dag: RunDag, mail_server: MailServer
) -> None:
    sender = SmtpNotifier(to="bi@a.example", from_email="a@a.example", subject="{{ dag.dag_id }}")
    dag = asking("subject", sender, prompt="orders per month")
    run_dag(dag)
    run_dag(dag)
    assert [mail["Subject"] for mail in mail_server.mails] == ["subject", "subject"]


# Deadline alerts: data in the place of notifiers, no task in the context, an event loop.

RESULT = {
    "answer": "Up.",
    "queries": [
        {
            "title": "Revenue",
            "columns": [{"name": "country"}, {"name": "revenue"}],
            "rows": [["Spain", 3], ["Italy", 2]],
            "total_rows": 2,
            "chart": {"mark": "bar", "encoding": {"x": {"field": "country"}}},
        }
    ],
}
DEADLINE = {
    "dag_run": {"dag_id": "late", "dag_run_id": "run_1"},
    "deadline": {"id": "1", "deadline_time": "2026-01-01T03:00:00Z"},
}

needs_await = pytest.mark.skipif(
    not hasattr(BaseNotifier, "__await__"), reason="this Airflow has no deadline alerts"
)


@pytest.fixture
def stored_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """The XCom of the task that asked, as the triggerer would read it."""

    def stored(**named: str) -> Any:
        assert named == {
            "dag_id": "late", "run_id": "run_1", "task_id": "ask", "key": "return_value",
        }  # fmt: skip
        return RESULT

    monkeypatch.setattr("airflow_provider_platform.notifications._message.get_run_xcom", stored)


async def awaited(make: Callable[[], Any]) -> None:
    await make()


@pytest.mark.exhaustive
@needs_await
@pytest.mark.usefixtures("stored_result")
@pytest.mark.parametrize("function", [keep, keep_on_loop])
def test_missed_deadline_is_reported_on_an_event_loop(function: Any) -> None:
    asyncio.run(
        awaited(lambda: PlatformAnswerNotifier(function, task_id="ask", context=dict(DEADLINE)))
    )
    sent_message = kept()
    assert sent_message["title"] == "late.ask missed its deadline"
    assert sent_message["text"].startswith(
        "late.ask missed its deadline\nThe deadline was missed: 2026-01-01T03:00:00Z\n\nUp.\n"
    )
    assert sent_message["pictures"] == ["\x89PNG"]


@pytest.mark.exhaustive
@needs_await
@pytest.mark.usefixtures("stored_result")
def test_a_notifier_given_as_data_sends_a_mail_from_an_event_loop(mail_server: MailServer) -> None:
    target = {
        "class": "airflow.providers.smtp.notifications.smtp.SmtpNotifier",
        "to": "bi@a.example",
        "from_email": "airflow@a.example",
    }
    asyncio.run(
        awaited(lambda: PlatformAnswerNotifier(target, task_id="ask", context=dict(DEADLINE)))
    )
    check_mail(mail_server)


@needs_await
def test_airflow_accepts_the_notifier_in_a_deadline_alert() -> None:
    from datetime import timedelta

    sdk = pytest.importorskip(
        "airflow.sdk.definitions.callback", reason="this Airflow has no deadline alerts"
    )
    from airflow.sdk import DeadlineAlert, DeadlineReference

    target = {"class": "airflow.providers.smtp.notifications.smtp.SmtpNotifier", "to": "a@b"}
    alert = DeadlineAlert(
        reference=DeadlineReference.DAGRUN_QUEUED_AT,
        interval=timedelta(minutes=5),
        callback=sdk.AsyncCallback(
            PlatformAnswerNotifier, {"send_with": [target], "task_id": "ask"}
        ),
    )
    assert alert.callback.path.endswith("notifications.answer.PlatformAnswerNotifier")


@pytest.mark.parametrize(
    "send_with", [[], None, "slack", ["slack"], {"channel": "#a"}, SmtpNotifier, [SmtpNotifier]]
)
def test_invalid_notifier_is_refused_when_the_dag_is_parsed(send_with: Any) -> None:
    with pytest.raises(PlatformConfigError, match="send_with"):
        PlatformAnswerNotifier(send_with)


class _Failed:
    """A task of a callback, whose results cannot be read, whose address is not known."""

    dag_id, run_id, task_id, map_index = "dag", "run", "ask", 3

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error

    @property
    def log_url(self) -> str:
        raise RuntimeError("no base_url is configured")

    def xcom_pull(self, **_: Any) -> Any:
        if self._error is not None:
            raise self._error


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ConnectionError("the API server is away"), "The result of task ask could not be read."),
        (None, "Task ask has no result."),
    ],
)
def test_a_message_goes_out_without_a_result_and_says_why(
    error: Exception | None,
    said: str,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
) -> None:
    PlatformAnswerNotifier(keep, charts=False).notify({"ti": _Failed(error)})
    assert said in kept()["text"]
    assert "Map index" in kept()["text"]
    logged = caplog.text + capsys.readouterr().out
    assert ("the API server is away" in logged) == (error is not None)


def test_an_async_function_is_only_for_deadline_alerts() -> None:
    with pytest.raises(PlatformError, match="1 of 1 notifiers could not send"):
        PlatformAnswerNotifier(keep_on_loop, charts=False).notify({"ti": _Failed()})
    assert SENT == []
