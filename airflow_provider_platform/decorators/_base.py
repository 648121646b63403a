"""Tasks whose main argument is what a decorated function returns."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_platform._airflow import (
    SET_DURING_EXECUTION,
    DecoratedOperator,
    determine_kwargs,
    resumes,
)
from airflow_provider_platform.client.argument_rules import is_absent, shown
from airflow_provider_platform.client.errors import PlatformInputError
from airflow_provider_platform.operators._base import PlatformOperator, ShortTraceback

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from airflow_provider_platform._airflow import Context


class ReturnedText:
    """An argument that the function returns. It is called when the text is first needed: a task
    that resumes with its result does not call it again."""

    def __get__(self, task: Any, owner: type | None = None) -> Any:
        return self if task is None else task.returned_text()

    def __set__(self, task: Any, value: Any) -> None:
        task.keep_text(value)


class FunctionOperator(DecoratedOperator, PlatformOperator):
    """Base of the decorated operators; what the function returns is not rendered again.

    A subclass names the argument, and declares it as `ReturnedText`.
    """

    argument: ClassVar[str]
    """The operator's argument that the function returns."""
    meaning: ClassVar[str]
    """What it is, for an error."""
    template_fields_renderers: ClassVar[dict[str, str]] = {}
    # Airflow reads the rendered fields again at the end, when the function has been called.
    overwrite_rtif_after_execution = True
    xcom_push: ClassVar[None] = None
    """`DecoratedOperator` of Airflow 3.0 reads it, and there no operator has it."""
    _context: Context | None = None
    _text: Any = SET_DURING_EXECUTION

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        decorated = DecoratedOperator
        fields = (*decorated.template_fields, cls.argument, *cls.checks, "platform_conn_id")
        cls.template_fields = tuple(dict.fromkeys(fields))
        shown_as = {name: how for base in cls.__mro__ for name, how in _renderers(base).items()}
        cls.template_fields_renderers = {
            name: how for name, how in shown_as.items() if name in cls.template_fields
        }

    def __init__(
        self,
        *,
        python_callable: Callable[..., str],
        op_args: Sequence[Any] | None = None,
        op_kwargs: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        text: dict[str, Any] = {self.argument: SET_DURING_EXECUTION}
        super().__init__(
            python_callable=python_callable,
            op_args=op_args,
            op_kwargs=op_kwargs,
            **text,
            **kwargs,
        )

    def returned_text(self) -> Any:
        """What the function returns, once there is a context to call it in."""
        if self._text is SET_DURING_EXECUTION and self._context is not None:
            self._text = self._call_function(self._context)
        return self._text

    def keep_text(self, value: Any) -> None:
        """The text, where it is known already."""
        self._text = value

    def execute(self, context: Context) -> Any:
        """Run the operator with what the function returns."""
        with self._calling_in(context), ShortTraceback():
            return super().execute(context)

    def resume_execution(
        self, next_method: str, next_kwargs: dict[str, Any] | None, context: Context
    ) -> Any:
        """Go on after the wait."""
        with self._calling_in(context), ShortTraceback():
            return super().resume_execution(next_method, next_kwargs, context)

    def _do_render_template_fields(
        self,
        parent: Any,
        template_fields: Iterable[str],
        context: Context,
        jinja_env: Any,
        seen_oids: set[int],
    ) -> None:
        """Render; for mapped tasks too, which Airflow renders by this method only.

        A try that resumes does not know what the function has returned, and Airflow would store its
        fields over those of the try that deferred, which show it.
        """
        super()._do_render_template_fields(parent, template_fields, context, jinja_env, seen_oids)
        if parent is self and resumes(context):
            self.template_fields = ()

    @contextmanager
    def _calling_in(self, context: Context) -> Iterator[None]:
        """Let the function be called meanwhile; who reads the text later gets what is known."""
        self._context = context
        try:
            yield
        finally:
            self._context = None

    def _call_function(self, context: Context) -> str:
        known = {**context, **self.op_kwargs}
        kwargs = determine_kwargs(self.python_callable, self.op_args, known)
        text = self.python_callable(*self.op_args, **kwargs)
        with self.named_errors():
            if not isinstance(text, str) or is_absent(text):
                raise PlatformInputError(
                    f"Nothing was sent: the function must return {self.meaning}, a str that is not "
                    f"empty; it returned {shown(text)}.",
                    field=self.argument,
                )
            return text


def _renderers(base: type) -> dict[str, str]:
    renderers: dict[str, str] = vars(base).get("template_fields_renderers", {})
    return renderers
