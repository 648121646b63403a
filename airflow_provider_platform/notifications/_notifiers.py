"""The notifiers of Airflow and other providers that send a message: which form each one gets."""

from __future__ import annotations

import copy
import inspect
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from airflow_provider_platform._airflow import BaseNotifier, redacted
from airflow_provider_platform.client.errors import PlatformError
from airflow_provider_platform.client.service_text import quote_service
from airflow_provider_platform.messages import mail

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from airflow_provider_platform.notifications._message import Answer

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
    "airflow.providers.slack.notifications.slack_webhook.SlackWebhookNotifier": _slack,
    "airflow.providers.smtp.notifications.smtp.SmtpNotifier": _smtp,
    "airflow.providers.apprise.notifications.apprise.AppriseNotifier": _apprise,
}


def _fillers(notifier: Any) -> list[Callable[[Any, Answer], dict[str, Any]]]:
    """How a notifier of a known class, or of one made from it, is filled; by name, so that no
    provider is imported."""
    names = [f"{base.__module__}.{base.__qualname__}" for base in type(notifier).__mro__]
    return [_KNOWN[name] for name in names if name in _KNOWN][:1]
