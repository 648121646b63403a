"""How the sandbox behaves without faults: pace, dialect, and what the contract leaves open."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from airflow_provider_platform.client.operations_table import operations


def _known_permission(name: str) -> str:
    known = {one.needs for one in operations().values() if one.needs} | _FURTHER_PERMISSIONS
    if name not in known:
        raise ValueError(f"{name!r} is none of {', '.join(map(repr, sorted(known)))}")
    return name


_FURTHER_PERMISSIONS = {"DownloadData", "SchemaUpdateDevBranches"}
"""Permissions that only some calls of an operation need. Without ``SchemaUpdate``,
``SchemaUpdateDevBranches`` allows the changes of all branches but the deploy branch."""
Permission = Annotated[str, AfterValidator(_known_permission)]

BuildOutcome = Literal["built", "failed", "cancelled", "stopped", "none"]
"""How a build ends, as build-status names it."""

JobOutcome = Literal[
    "done", "no_rows", "failure", "missing_partition", "pre_agg_not_found", "not_found"
]
"""How the build of a pre-aggregation's table ends; ``no_rows`` is reported as ``done`` too, and
``not_found`` from the beginning."""

Seconds = Annotated[float, Field(ge=0, strict=True)]
Count = Annotated[int, Field(ge=1, strict=True)]
Tokens = Annotated[int, Field(ge=0, strict=True)]


class Settings(BaseModel):
    """All settings; each can be changed at any time through ``SandboxControl.set``.

    The page on the sandbox says what each value means. Times are in seconds. A change applies to
    what happens after it: an active run reads the pace again before each record.
    """

    model_config = ConfigDict(extra="forbid")

    pace: Seconds = 0.0
    dbt_pace: Seconds = 0.0
    follow_up: Literal["subscribe", "state"] = "subscribe"
    replay: Literal["before_cutoff", "after_cutoff", "overlap", "none"] = "before_cutoff"
    stopped_thread: Literal["state", "aborted", "close"] = "state"
    chat_row_limit: Count = 100
    service_tokens: Annotated[bool, Field(strict=True)] = False
    chat_rows: Literal["values", "texts"] = "values"
    answer_tokens: Tokens | None = None
    token_quota: Tokens | None = None
    usage_seconds: Seconds = 0.0
    tenant: Literal["described", "newest"] = "newest"
    dbt_outcome: Literal["COMPLETED", "FAILED", "UNKNOWN"] = "COMPLETED"
    build_delay: Seconds = 0.0
    build_seconds: Seconds = 0.0
    build_outcome: BuildOutcome = "built"
    branch_lacks_months: tuple[str, ...] = ()
    branch_lacks_columns: tuple[str, ...] = ()
    named_commits: Literal["all", "branches", "none"] = "all"
    merge_outcome: Literal["merged", "nothing", "conflict", "not_allowed"] = "merged"
    merge_commit: Literal["own", "fast_forward"] = "own"
    deploy_mode: Literal["git", "cli"] = "git"
    token_lacks: tuple[Permission, ...] = ()
    export_pace: Seconds = 0.0
    export_outcome: Literal["completed", "failed"] = "completed"
    delivery_queue_seconds: Seconds = 0.0
    delivery_seconds: Seconds = 0.0
    delivery_outcome: Literal["succeeded", "failed", "unreported", "hangs"] = "succeeded"
    lists: Literal["cursor", "legacy"] = "cursor"
    page_size: Count = 50
    data_chunk_rows: Count | None = None
    column_types: Literal["core", "words"] = "core"
    data_default_rows: Count = 10_000
    data_max_rows: Count | None = 50_000
    jobs_build_seconds: Seconds = 0.0
    jobs_gap_seconds: Seconds = 0.0
    jobs_outcome: JobOutcome = "done"
    jobs_outcome_of: tuple[str, ...] = ()
    evaluations: Annotated[bool, Field(strict=True)] = True
    evaluation_pace: Seconds = 0.0
    evaluation_results_delay: Seconds = 0.0
    built_pre_aggregations: tuple[str, ...] = ()
    default_api_scopes: tuple[Literal["meta", "data", "graphql", "jobs", "sql"], ...] = (
        "meta",
        "data",
        "graphql",
    )

    def has(self, *, newest: bool) -> bool:
        """Return whether the tenant has what only the newest one has, if it is that."""
        return self.tenant == "newest" or not newest

    def change(self, changes: dict[str, Any]) -> None:
        """Apply ``changes``; raises ``ValueError`` naming the setting and the rule."""
        try:
            changed = type(self).model_validate({**self.as_json(), **changes})
        except ValidationError as error:
            raise ValueError("; ".join(map(_problem, error.errors(include_url=False)))) from None
        for name in changes:
            setattr(self, name, getattr(changed, name))

    def as_json(self) -> dict[str, Any]:
        return self.model_dump(mode="json")


SETTING_NAMES = frozenset(Settings.model_fields)


def _problem(found: Any) -> str:
    name = str(found["loc"][0])
    if found["type"] == "extra_forbidden":
        return f"no setting {name!r}; known are {', '.join(sorted(SETTING_NAMES))}"
    return f"{name}: {found['msg']}"
