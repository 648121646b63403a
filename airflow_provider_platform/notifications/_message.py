"""What a notifier has to say: the task, how it ended, its result, in every form that is sent."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from airflow_provider_platform._airflow import get_run_xcom, redacted
from airflow_provider_platform.client.errors import PlatformError
from airflow_provider_platform.client.service_text import quote_service
from airflow_provider_platform.messages import mail
from airflow_provider_platform.messages.markdown import to_markdown
from airflow_provider_platform.messages.message import Message, message_of, to_plain
from airflow_provider_platform.messages.slack import to_slack

if TYPE_CHECKING:
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
        return None

    def _default_title(self) -> str:
        dag_id, _ = self._run()
        name = ".".join(part for part in (dag_id, self._named_task()) if part) or "Airflow"
        if self.context.get("exception") is not None:
            return f"{name} failed"
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
