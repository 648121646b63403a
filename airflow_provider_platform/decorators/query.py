"""`@task.platform_sql`: the function returns the SQL, the task what it gives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from airflow_provider_platform._airflow import task_decorator_factory
from airflow_provider_platform.decorators._base import FunctionOperator, ReturnedText
from airflow_provider_platform.operators.query import PlatformQueryOperator

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from airflow_provider_platform._airflow import TaskDecorator
    from airflow_provider_platform.operators._base import Checks


class PlatformSqlDecoratedOperator(FunctionOperator, PlatformQueryOperator):
    """Runs what the function returns.

    :param multiple_outputs: push the result key by key too (the default), so that
        `read()["rows"]` works
    """

    custom_operator_name = "@task.platform_sql"
    argument = "sql"
    meaning = "the SQL"
    template_ext: Sequence[str] = ()
    checks: ClassVar[Checks] = {"sql": None}
    sql: Any = ReturnedText()


def platform_sql_task(
    python_callable: Callable[..., str] | None = None,
    multiple_outputs: bool | None = None,
    **kwargs: Any,
) -> TaskDecorator:
    """Turn a function that returns SQL into a `PlatformQueryOperator` task.

    Use it if a template is not enough for the SQL: the function builds it from other tasks'
    results, and returns it.

    Returns what `PlatformQueryOperator` returns, and pushes it key by key (`multiple_outputs`, the
    default).
    """
    return task_decorator_factory(
        python_callable=python_callable,
        multiple_outputs=True if multiple_outputs is None else multiple_outputs,
        decorated_operator_class=PlatformSqlDecoratedOperator,
        **kwargs,
    )
