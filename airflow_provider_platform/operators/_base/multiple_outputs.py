"""A result key by key on releases that cannot store an XCom of None."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import isgenerator
from typing import TYPE_CHECKING, Any

from airflow_provider_platform._airflow import XCOM_TAKES_NONE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from airflow_provider_platform._airflow import Context

    AfterExecution = Callable[[Context, Any], Any]


def storing_outputs(author: AfterExecution | None) -> AfterExecution | None:
    """The `post_execute` of a task, `author` being what the DAG's author gave for it.

    Airflow calls it between the execution and the storing of what came of it, which it is the only
    one to see of every operator, deferred or not. Where None cannot be stored, it stores the keys
    that have a value, and leaves to Airflow the result as a whole.
    """
    if XCOM_TAKES_NONE:
        return author

    def store(context: Context, result: Any) -> Iterator[Any]:
        done = author(context, result) if author is not None else None
        if isgenerator(done):
            yield from done
        ti: Any = context["ti"]
        if ti.task.multiple_outputs and ti.task.do_xcom_push and _lacks_values(result):
            for key, value in result.items():
                if value is not None:
                    ti.xcom_push(key=key, value=value)
            # Of the copy that is executed: what the DAG says of the task stays.
            ti.task.multiple_outputs = False

    return store


def _lacks_values(result: Any) -> bool:
    return (
        isinstance(result, Mapping)
        and None in result.values()
        and all(isinstance(key, str) for key in result)
    )
