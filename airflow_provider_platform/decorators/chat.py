"""`@task.platform_chat`: the function returns the prompt, the task the agent's answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_platform._airflow import (
    SET_DURING_EXECUTION,
    DecoratedOperator,
    determine_kwargs,
    task_decorator_factory,
)
from airflow_provider_platform.client.errors import PlatformInputError
from airflow_provider_platform.operators._base.arguments import shown
from airflow_provider_platform.operators._base.operator import ForeseenFailures
from airflow_provider_platform.operators.chat import PlatformChatOperator

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from airflow_provider_platform._airflow import Context, TaskDecorator
    from airflow_provider_platform.operators._base.operator import Checks


class PlatformChatDecoratedOperator(DecoratedOperator, PlatformChatOperator):
    """Calls the function for the prompt when it runs; what it returns is not rendered again."""

    custom_operator_name = "@task.platform_chat"
    template_fields: Sequence[str] = (
        *DecoratedOperator.template_fields,
        *(name for name in PlatformChatOperator.template_fields if name != "prompt"),
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {
        **DecoratedOperator.template_fields_renderers,
        **PlatformChatOperator.template_fields_renderers,
    }

    checks: ClassVar[Checks] = {"prompt": None}
    _context: Context | None = None
    _prompt: Any = SET_DURING_EXECUTION

    def __init__(
        self,
        *,
        python_callable: Callable[..., str],
        op_args: Sequence[Any] | None = None,
        op_kwargs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        kwargs.setdefault("multiple_outputs", True)
        super().__init__(
            python_callable=python_callable,
            op_args=op_args,
            op_kwargs=op_kwargs,
            prompt=SET_DURING_EXECUTION,
            **kwargs,
        )

    @property
    def prompt(self) -> Any:
        """What the function returns, called when the prompt is first needed: a task that resumes
        with its answer does not call it again."""
        if self._prompt is SET_DURING_EXECUTION and self._context is not None:
            self._prompt = self._call_function(self._context)
        return self._prompt

    @prompt.setter
    def prompt(self, value: Any) -> None:
        self._prompt = value

    def execute(self, context: Context) -> Any:
        """Ask what the function returns."""
        self._context = context
        with ForeseenFailures():
            return super().execute(context)

    def resume_execution(
        self, next_method: str, next_kwargs: dict[str, Any] | None, context: Context
    ) -> Any:
        """Go on after the wait."""
        self._context = context
        with ForeseenFailures():
            return super().resume_execution(next_method, next_kwargs, context)

    def _call_function(self, context: Context) -> str:
        known = {**context, **self.op_kwargs}
        kwargs = determine_kwargs(self.python_callable, self.op_args, known)
        prompt = self.python_callable(*self.op_args, **kwargs)
        if not isinstance(prompt, str) or not prompt.strip():
            with self.named_errors():
                raise PlatformInputError(
                    "Nothing was sent: the function must return the prompt, a str that is not "
                    f"empty; it returned {shown(prompt)}.",
                    field="prompt",
                )
        return prompt


def platform_chat_task(
    python_callable: Callable[..., str] | None = None,
    multiple_outputs: bool | None = None,
    **kwargs: Any,
) -> TaskDecorator:
    """Turn a function that returns a prompt into a `PlatformChatOperator` task.

    Takes the operator's parameters; by default the result is pushed key by key.
    """
    return task_decorator_factory(
        python_callable=python_callable,
        multiple_outputs=True if multiple_outputs is None else multiple_outputs,
        decorated_operator_class=PlatformChatDecoratedOperator,
        **kwargs,
    )
