"""`@task.platform_chat`: the function returns the prompt, the task the agent's answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_platform._airflow import task_decorator_factory
from airflow_provider_platform.decorators._base import FunctionOperator, ReturnedText
from airflow_provider_platform.operators.chat import PlatformChatOperator

if TYPE_CHECKING:
    from collections.abc import Callable

    from airflow_provider_platform._airflow import TaskDecorator
    from airflow_provider_platform.operators._base import Checks


class PlatformChatDecoratedOperator(FunctionOperator, PlatformChatOperator):
    """Asks what the function returns.

    :param multiple_outputs: push the result key by key too (the default), so that
        `ask()["answer"]` works
    """

    custom_operator_name = "@task.platform_chat"
    argument = "prompt"
    meaning = "the prompt"
    checks: ClassVar[Checks] = {"prompt": None}
    prompt: Any = ReturnedText()


def platform_chat_task(
    python_callable: Callable[..., str] | None = None,
    multiple_outputs: bool | None = None,
    **kwargs: Any,
) -> TaskDecorator:
    """Turn a function that returns a prompt into a `PlatformChatOperator` task.

    Use it if a template is not enough for the prompt: the function builds it from other tasks'
    results, and returns it.

    Returns what `PlatformChatOperator` returns, and pushes it key by key (`multiple_outputs`, the
    default).
    """
    return task_decorator_factory(
        python_callable=python_callable,
        multiple_outputs=True if multiple_outputs is None else multiple_outputs,
        decorated_operator_class=PlatformChatDecoratedOperator,
        **kwargs,
    )
