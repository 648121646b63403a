"""What a type checker, and so an editor, knows of the rows of `run_sql`: checked by `make types`.

Nothing here runs. A line with `type: ignore` is a mistake that must be found: strict checking
reports an ignore that nothing needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, assert_type

import polars as pl

if TYPE_CHECKING:
    from airflow_provider_platform.hooks.platform import PlatformHook


def of_the_hook(hook: PlatformHook) -> None:
    rows = hook.run_sql("SELECT 1")
    assert_type(next(rows), list[Any])
    assert_type(rows.to_polars(types={"at": "timestamp"}), pl.DataFrame)
    rows.to_arrow(on_truncated="fail", types="strict")
    rows.to_pandas(dtype_backend="numpy")  # type: ignore[arg-type]
    rows.to_arrow(on_truncated="raise")  # type: ignore[arg-type]
    rows.to_arrow("text")  # type: ignore[call-arg]
