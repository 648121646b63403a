"""The message of a notifier, and how it gets into the notifiers of Airflow and other providers.

`Answer` has the task, how it ended and its result, in every form that is sent. `Sending` gives each
notifier the form that it can send.
"""

from __future__ import annotations

import copy
import inspect
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import contextmanager
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from airflow_provider_platform._airflow import BaseNotifier, get_failed, get_run_xcom, redacted
from airflow_provider_platform.client.errors import PlatformError
from airflow_provider_platform.client.redaction import quote_service
from airflow_provider_platform.messages import mail
from airflow_provider_platform.messages.markdown import to_markdown
from airflow_provider_platform.messages.message import Message, message_of, to_plain
from airflow_provider_platform.messages.slack import to_slack

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType

    from airflow_provider_platform.messages.message import Section


RESULT_KEY = "return_value"


class Answer:
    """The message of one callback. Made whole by `prepare`; its pictures go with `close`.

    `prepare` blocks: it reads XComs and draws charts.
    """

    def __init__(
        self,
        context: Mapping[str, Any],
        *,
        task_id: str | None,
        title: str | None,
        max_rows: int,
        charts: bool,
        chart_fonts: str | None,
        log: Any,
    ) -> None:
        self.context = context
        self._task_id = task_id
        self._title = title
        self._max_rows = max_rows
        self._charts = charts
        self._chart_fonts = chart_fonts
        self._log = log
        self._folder: Path | None = None
        self.pictures: dict[int, Path] = {}
        """Files of pictures by the positions of their queries."""
        self.result: Any = None
        self.message = Message("")

    def __enter__(self) -> Self:
        self.prepare()
        return self

    def __exit__(
        self,
        error_class: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def prepare(self) -> None:
        failure = self._failure()
        parts = [failure] if failure else []
        if self._task_id is not None or not failure:
            self.result, problem = self._read()
            parts += [problem] if problem else []
        answer = self.result.get("answer") if isinstance(self.result, Mapping) else None
        if parts and answer is not None:
            parts.append(str(answer))
        self.message = message_of(
            self.result,
            title=self._title or self._default_title(),
            text="\n\n".join(parts) if parts else None,
            facts=self._facts(),
            link=self._link(),
            max_rows=self._max_rows,
        )
        if self._charts:
            self._draw()

    def close(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    @cached_property
    def forms(self) -> dict[str, Any]:
        """What functions are called with and templates know as `platform_answer`."""
        text, blocks = to_slack(self.message)
        return {
            "title": mail.subject(self.message),
            "text": to_plain(self.message),
            "markdown": to_markdown(self.message),
            "html": mail.to_html(self.message),
            "page": mail.to_page(
                self.message, {at: path.read_bytes() for at, path in self.pictures.items()}
            ),
            "slack_text": text,
            "slack_blocks": blocks,
            "picture_paths": [str(path) for path in self.pictures.values()],
            "result": self.result,
        }

    # What happened

    @property
    def _ti(self) -> Any:
        return self.context.get("ti") or self.context.get("task_instance")

    def _run(self) -> tuple[str | None, str | None]:
        """DAG id and run id: of the task, or of the run as a deadline alert names it."""
        if self._ti is not None:
            return self._ti.dag_id, self._ti.run_id
        if (dag := self.context.get("dag")) is not None:
            return dag.dag_id, self.context.get("run_id")
        run = self.context.get("dag_run")
        named = run if isinstance(run, Mapping) else vars(run) if run is not None else {}
        run_id = named.get("run_id") or named.get("dag_run_id") or self.context.get("run_id")
        return named.get("dag_id"), run_id

    def _named_task(self) -> str | None:
        return self._task_id or (self._ti.task_id if self._ti is not None else None)

    def _failure(self) -> str | None:
        error = self.context.get("exception")
        if error is not None:
            message = quote_service(redacted(str(error)))
            type_name = type(error).__name__
            own = isinstance(error, (PlatformError, str)) or type_name == "AirflowFailException"
            return (
                f"What failed: {message or type_name}"
                if own
                else f"What failed: {type_name}: {message}"
            )
        if (deadline := self.context.get("deadline")) is not None:
            when = deadline.get("deadline_time") if isinstance(deadline, Mapping) else deadline
            return f"The deadline was missed: {when}"
        if self._run_failed:
            return f"The DAG run failed ({self.context['reason']}). {self._failed_tasks()}"
        return None

    @property
    def _run_failed(self) -> bool:
        """Whether this is the callback of a DAG whose run failed. Airflow gives such a callback a
        reason and no exception (airflow#51402)."""
        return self.context.get("reason") not in (None, "success")

    def _failed_tasks(self) -> str:
        """Return the sentence that names the failed tasks of the run."""
        dag_id, run_id = self._run()
        try:
            names = get_failed(str(dag_id), str(run_id))
        except Exception as error:  # noqa: BLE001  # the message goes out without them
            self._log.warning("The failed tasks could not be read: %s", quote_service(error))
            names = [self._ti.task_id] if self._ti is not None else []
        return f"Failed tasks: {', '.join(names) or 'none'}."

    def _default_title(self) -> str:
        dag_id, _ = self._run()
        name = ".".join(part for part in (dag_id, self._named_task()) if part) or "Airflow"
        if self.context.get("exception") is not None:
            return f"{name} failed"
        if self._run_failed:
            return f"{dag_id} failed"
        if self.context.get("deadline"):
            return f"{name} missed its deadline"
        return f"{name}: answer" if self.result is not None else f"{name}: no answer"

    def _facts(self) -> list[tuple[str, str]]:
        dag_id, run_id = self._run()
        ti = self._ti
        facts = [("DAG", dag_id), ("Run", run_id), ("Task", self._named_task())]
        if ti is not None and ti.map_index is not None and ti.map_index >= 0:
            facts.append(("Map index", str(ti.map_index)))
        if (loop := self.context.get("loop")) is not None:  # Airflow 3.4 and later
            facts.append(("Pass of the loop", str(loop.index)))
        return [(name, str(value)) for name, value in facts if value]

    def _link(self) -> str | None:
        try:
            url = self._ti.log_url if self._ti is not None else None
        except Exception:  # noqa: BLE001  # a convenience; Airflow may not know its address
            return None
        return url if isinstance(url, str) else None

    def _read(self) -> tuple[Any, str | None]:
        """The task's result, and what to say where there is none."""
        task_id = self._named_task()
        if task_id is None:
            return None, "The notifier does not know which task's answer to send. Give task_id."
        try:
            value = self._pull(task_id)
        except Exception as error:  # noqa: BLE001  # the message goes out without it
            self._log.warning(
                "The result of task %s could not be read: %s", task_id, quote_service(error)
            )
            return None, f"The result of task {task_id} could not be read."
        if value is None:
            return None, f"Task {task_id} has no result."
        return _together(value), None

    def _pull(self, task_id: str) -> Any:
        ti = self._ti
        if ti is not None and hasattr(ti, "xcom_pull"):
            own = {"map_indexes": ti.map_index} if _shares_map_index(ti, task_id) else {}
            return ti.xcom_pull(task_ids=task_id, key=RESULT_KEY, **own)
        dag_id, run_id = self._run()
        if dag_id is None or run_id is None:
            return None
        return get_run_xcom(dag_id=dag_id, run_id=run_id, task_id=task_id, key=RESULT_KEY)

    # Pictures

    def _draw(self) -> None:
        from airflow_provider_platform.charts import ChartError, ChartRenderer

        wanted = [
            (position, section)
            for position, section in enumerate(self.message.sections)
            if section.chart is not None and section.error is None
        ]
        if not wanted:
            return
        self._folder = Path(tempfile.mkdtemp(prefix="platform-answer-"))
        with ChartRenderer(fonts=self._chart_fonts) as renderer:
            for position, section in wanted:
                query = (
                    repr(quote_service(section.title))
                    if section.title
                    else f"{position + 1} (no title)"
                )
                try:
                    content = _stored(section)
                    if content is None and section.complete:
                        drawn = renderer.render(section.chart or {}, section.columns, section.rows)
                        content = drawn["png"]
                        for note in drawn.notes:
                            self._log.warning(
                                "The chart of query %s: %s", query, quote_service(note)
                            )
                except (ChartError, OSError) as error:
                    self._log.warning(
                        "The chart of query %s is left out: %s", query, quote_service(error)
                    )
                    continue
                if content is not None:
                    path = self._folder / f"chart-{position + 1}.png"
                    path.write_bytes(content)
                    self.pictures[position] = path


def _stored(section: Section) -> bytes | None:
    """The picture that the task has stored, where it can be read here."""
    from airflow_provider_platform._airflow import ObjectStoragePath

    for path in section.chart_paths:
        if path.lower().endswith(".png"):
            try:
                content = ObjectStoragePath(path).read_bytes()
            except Exception:  # noqa: BLE001, S112  # no connection, no file here: drawn anew
                continue
            return bytes(content)
    return None


def _shares_map_index(ti: Any, task_id: str) -> bool:
    """Whether the named task runs once for each map index of this one: it is this task, or both are
    in one mapped task group."""
    if task_id == ti.task_id:
        return True
    task = getattr(ti, "task", None)
    tasks = getattr(getattr(task, "dag", None), "task_dict", {})
    if task is None or task_id not in tasks:
        return False
    own = {group.group_id for group in task.iter_mapped_task_groups()}
    return any(group.group_id in own for group in tasks[task_id].iter_mapped_task_groups())


def _together(value: Any) -> Any:
    """The results of a mapped task as one."""
    if isinstance(value, (str, bytes, Mapping)) or not hasattr(value, "__iter__"):
        return value
    results = [result for result in value if isinstance(result, Mapping)]
    return {
        "answer": "\n\n".join(str(result["answer"]) for result in results if result.get("answer")),
        "queries": [query for result in results for query in _queries(result)],
    }


def _queries(result: Mapping[str, Any]) -> list[Any]:
    """The queries of a chat task's result; a query task's is one itself."""
    return list(result.get("queries") or ()) or ([result] if "columns" in result else [])


KEY = "platform_answer"


class NotificationFailedError(PlatformError):
    """Some of the notifiers did not send; the others did. The log says why."""


class Sending:
    """One message to several targets: one that fails does not keep it from the others."""

    def __init__(self, log: Any) -> None:
        self._log = log
        self._tried = 0
        self._failed: list[str] = []

    @contextmanager
    def to(self, target: Any) -> Iterator[None]:
        self._tried += 1
        name = _name(target)
        try:
            yield
        except Exception as error:  # noqa: BLE001
            self._failed.append(f"{name} ({type(error).__name__})")
            message = quote_service(redacted(str(error)))
            self._log.error("%s could not send: %s: %s", name, type(error).__name__, message)

    def finish(self) -> None:
        """Raise NotificationFailedError if a target failed."""
        if self._failed:
            raise NotificationFailedError(
                f"{len(self._failed)} of {self._tried} notifiers could not send: "
                f"{', '.join(self._failed)}. The log above has the reason of each."
            )

    def send(self, target: Any, answer: Answer) -> None:
        notifier = _made(target)
        if isinstance(notifier, BaseNotifier):
            ready, context = _filled(notifier, answer)
            ready.notify(context)
            return
        called = notifier(answer.forms)
        if inspect.isawaitable(called):
            if inspect.iscoroutine(called):
                called.close()
            raise PlatformError(
                "This notifier is an async function, which only a deadline alert can call. Use a "
                "function without async here."
            )

    async def send_on_loop(self, target: Any, answer: Answer) -> None:
        from asgiref.sync import sync_to_async

        notifier = _made(target)
        if not isinstance(notifier, BaseNotifier):
            if inspect.iscoroutinefunction(notifier):
                await notifier(answer.forms)
            else:
                await sync_to_async(self.send)(notifier, answer)
            return
        ready, context = await sync_to_async(_filled)(notifier, answer)
        asynchronous = getattr(type(ready), "async_notify", None)
        if asynchronous is getattr(BaseNotifier, "async_notify", None):
            await sync_to_async(ready.notify)(context)
        else:
            await ready.async_notify(context)


def _name(target: Any) -> str:
    if isinstance(target, dict):
        return str(target.get("class")).rpartition(".")[2]
    return getattr(target, "__name__", None) or type(target).__name__


def _made(target: Any) -> Any:
    if not isinstance(target, dict):
        return target
    module, _, name = str(target["class"]).rpartition(".")
    notifier_class = getattr(import_module(module), name)
    return notifier_class(**{key: value for key, value in target.items() if key != "class"})


def _filled(notifier: Any, answer: Answer) -> tuple[Any, dict[str, Any]]:
    """A copy of the notifier with its own templates rendered and then the message in place.

    In this order: an answer is never rendered.
    """
    ready = copy.copy(notifier)
    context: dict[str, Any] = {**answer.context, KEY: answer.forms}
    context.update({name: getattr(ready, name, None) for name in ready.template_fields})
    ready.context = context
    ready.render_template_fields(context)
    for fill in _fillers(notifier):
        for name, value in fill(ready, answer).items():
            setattr(ready, name, value)
    return ready, context


def _slack(_: Any, answer: Answer) -> dict[str, Any]:
    # No address of an answer is followed for a preview either.
    return {
        "text": answer.forms["slack_text"],
        "blocks": answer.forms["slack_blocks"],
        "unfurl_links": False,
        "unfurl_media": False,
    }


def _slack_webhook(notifier: Any, answer: Answer) -> dict[str, Any]:
    """Its `text` is required, so it is the author's: Slack shows it in notifications, and the
    blocks in the channel."""
    filled = _slack(notifier, answer)
    return filled | {"text": notifier.text or filled["text"]}


def _smtp(notifier: Any, answer: Answer) -> dict[str, Any]:
    """The mail's hook makes of each file a part whose content id is the file's name."""
    pictures = {position: f"cid:{path.name}" for position, path in answer.pictures.items()}
    arguments: dict[str, Any] = {"html_content": mail.to_html(answer.message, pictures)}
    if not notifier.subject:
        arguments["subject"] = mail.subject(answer.message)
    if answer.pictures:
        arguments["files"] = [*(notifier.files or ()), *answer.forms["picture_paths"]]
        if notifier.mime_subtype == "mixed":
            arguments["mime_subtype"] = "related"
    return arguments


def _apprise(notifier: Any, answer: Answer) -> dict[str, Any]:
    arguments: dict[str, Any] = {"body": answer.forms["markdown"], "body_format": "markdown"}
    if not notifier.title:
        arguments["title"] = answer.forms["title"]
    if answer.pictures and not notifier.attach:
        arguments["attach"] = answer.forms["picture_paths"]
    return arguments


_KNOWN: dict[str, Callable[[Any, Answer], dict[str, Any]]] = {
    "airflow.providers.slack.notifications.slack.SlackNotifier": _slack,
    "airflow.providers.slack.notifications.slack_webhook.SlackWebhookNotifier": _slack_webhook,
    "airflow.providers.smtp.notifications.smtp.SmtpNotifier": _smtp,
    "airflow.providers.apprise.notifications.apprise.AppriseNotifier": _apprise,
}


def _fillers(notifier: Any) -> list[Callable[[Any, Answer], dict[str, Any]]]:
    """How a notifier of a known class, or of one made from it, is filled; by name, so that no
    provider is imported."""
    names = [f"{base.__module__}.{base.__qualname__}" for base in type(notifier).__mro__]
    return [_KNOWN[name] for name in names if name in _KNOWN][:1]
