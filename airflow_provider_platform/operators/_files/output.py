"""What an operator writes: the path's ending, `output_format` and `output_options` as arguments."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from airflow_provider_platform.operators._base import arguments

if TYPE_CHECKING:
    from airflow_provider_platform.results.output import Output

optional_format = partial(arguments.optional_choice, choices=("parquet", "csv", "jsonl"))


def optional_options(name: str, value: Any) -> dict[str, Any] | None:
    """The options of a file, or None; checked as soon as they are known. Raises
    PlatformInputError."""
    found = arguments.mapping(name, value)
    if found is not None and not arguments.is_template(found):
        from airflow_provider_platform.results.output import output_options as check

        with arguments.within(name):
            check(found)
    return found


def planned_output(
    path: Any, output_format: str | None, output_options: dict[str, Any] | None
) -> Output:
    """What is written at a path; None is a folder whose files get names of their own. Raises
    ValueError for a contradiction."""
    from airflow_provider_platform.results.output import output_options as read_options
    from airflow_provider_platform.results.output import plan_output

    name = None if path is None else str(path)
    return plan_output(name, output_format, read_options(output_options))


def file_fits_its_name(*, output_path: Any, output_format: Any, output_options: Any) -> None:
    """A rule: path, format and options do not contradict each other."""
    if output_path is not None:
        planned_output(output_path, output_format, output_options)
    elif output_options:
        raise ValueError("output_options needs output_path, the file to write")


def folder_fits_its_files(*, output_path: Any, output_format: Any, output_options: Any) -> None:
    """A rule: format and options of the files in a folder do not contradict each other."""
    if output_options and output_path is None:
        raise ValueError("output_options needs output_path, a folder to write to")
    if output_options:
        planned_output(None, output_format, output_options)
