"""`PlatformAnswerNotifier`: a chat task's result as a message, sent by notifiers of Airflow's."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, cast

from airflow_provider_platform._airflow import BaseNotifier

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from airflow_provider_platform._airflow import Context
    from airflow_provider_platform.notifications._message import Answer

    Target = BaseNotifier | Mapping[str, Any] | Callable[[dict[str, Any]], Awaitable[None] | None]


SHOWN_ROWS = 10


class PlatformAnswerNotifier(BaseNotifier):
    """Make a message from the result of a chat task, and let other notifiers send it.

    Use it to send an answer to Slack, by e-mail or elsewhere, without another task.

    For `on_success_callback`, `on_failure_callback`, `on_retry_callback` and deadline alerts. Each
    entry of `send_with` is

    - a notifier of Airflow: `SlackNotifier`, `SlackWebhookNotifier`, `SmtpNotifier` and
      `AppriseNotifier` get the message in the form that they send (`SlackWebhookNotifier` also
      needs its own `text`, and `AppriseNotifier` a `body`: either may be empty). Any other notifier
      can show the message in a template, such as `"{{ platform_answer.text }}"`;
    - a notifier as data, for deadline alerts, which store their arguments: `{"class":
      "airflow.providers.slack.notifications.slack.SlackNotifier", "channel": "#bi"}`;
    - a function, which gets the value of `platform_answer`: `{"title", "text", "markdown", "html",
      "page", "slack_text", "slack_blocks", "picture_paths", "result"}`.

    If one of them fails, the others still send, and one error at the end names the failures.
    Airflow logs the error and does not change the task's state.

    :param send_with: one of these entries, or a list of them
    :param task_id: the task whose result is sent; default: the task of the callback, unless it
        failed. In a mapped task group, a task of the same group gives the result of the same map
        index. Results of any other mapped task are joined in one message. In a deadline alert, a
        mapped task has no result
    :param title: the first line; default: the task and how it ended
    :param max_rows: rows of each query that the message shows
    :param charts: whether e-mails and files have charts as pictures
    :param chart_fonts: a local folder of fonts for the charts, as for `PlatformChatOperator`
    :param context: the context of Airflow, which a deadline alert gives
    """

    template_fields: Sequence[str] = ("task_id", "title", "max_rows", "charts", "chart_fonts")

    def __init__(
        self,
        send_with: Target | Sequence[Target],
        *,
        task_id: str | None = None,
        title: str | None = None,
        max_rows: int | str = SHOWN_ROWS,
        charts: bool | str = True,
        chart_fonts: str | None = None,
        context: Any = None,
    ) -> None:
        super().__init__()
        self.context = cast("Context", context or {})
        self.send_with = send_with
        self.task_id = task_id
        self._names_task = task_id is not None
        self.title = title
        self.max_rows = max_rows
        self.charts = charts
        self.chart_fonts = chart_fonts
        self._check()

    def _check(self) -> None:
        from airflow_provider_platform.client.errors import PlatformConfigError
        from airflow_provider_platform.operators._arguments import is_template

        if not self._targets():
            raise PlatformConfigError(
                "send_with is empty. Give at least one notifier or function.", field="send_with"
            )
        for target in self._targets():
            named = isinstance(target, dict) and isinstance(target.get("class"), str)
            if not (named or callable(target)) or isinstance(target, type):
                raise PlatformConfigError(
                    "send_with must contain notifiers, functions or dicts with the key class (the "
                    f"import path of a notifier), not {type(target).__name__}.",
                    field="send_with",
                )
        if not is_template(self.max_rows):
            self._max_rows()

    def _targets(self) -> list[Any]:
        targets = self.send_with
        return list(targets) if isinstance(targets, (list, tuple)) else [targets]

    def __call__(self, *args: Any) -> None:
        # Rendering is for good, and `DAG.test` gives one notifier to many tasks.
        notifier = copy.copy(self)
        super(PlatformAnswerNotifier, notifier).__call__(*args)

    def notify(self, context: Any) -> None:
        from airflow_provider_platform.notifications._message import Sending

        sending = Sending(self.log)
        with self._answer(context) as answer:
            for target in self._targets():
                with sending.to(target):
                    sending.send(target, answer)
        sending.finish()

    async def async_notify(self, context: Any) -> None:
        from asgiref.sync import sync_to_async

        from airflow_provider_platform.notifications._message import Sending

        sending = Sending(self.log)
        answer = self._answer(context)
        await sync_to_async(answer.prepare)()
        try:
            for target in self._targets():
                with sending.to(target):
                    await sending.send_on_loop(target, answer)
        finally:
            answer.close()
        sending.finish()

    def _answer(self, context: Any) -> Answer:
        from airflow_provider_platform.client import argument_rules as arguments
        from airflow_provider_platform.client.errors import PlatformInputError
        from airflow_provider_platform.notifications._message import Answer

        if self._names_task and arguments.is_absent(self.task_id):
            raise PlatformInputError(
                "Nothing was sent: task_id has no value after rendering, and without it the "
                "message would have the result of the task that the callback is for. If you want "
                "that, leave task_id out.",
                field="task_id",
            )
        return Answer(
            context,
            task_id=self.task_id or None,
            title=arguments.optional(self.title),
            max_rows=self._max_rows(),
            charts=arguments.optional_boolean("charts", self.charts) is not False,
            chart_fonts=arguments.optional(self.chart_fonts),
            log=self.log,
        )

    def _max_rows(self) -> int:
        """Return how many rows the message shows: the default if the value has vanished, because a
        message with other rows is better than none."""
        from airflow_provider_platform.client import argument_rules as arguments

        given = arguments.optional(self.max_rows)
        return SHOWN_ROWS if given is None else arguments.whole_number("max_rows", given, minimum=0)
